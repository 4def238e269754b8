// Ends recordings at what a program cannot see: JavaScript that reads values between operators.
#pragma once

#include <napi.h>

#include "core/programs/recording.h"

namespace troupe {

// If the present recording was refused by the call that just ended: keeps an error whose stack has the user's line.
void note_refusal(Napi::Env env);

// Refuses the present recording, if any.
void refuse_in_recording(Napi::Env env, const char* reason);

// A value is read into JavaScript.
inline void refuse_reading(Napi::Env env) { refuse_in_recording(env, "a value that is read between operators"); }

}  // namespace troupe
