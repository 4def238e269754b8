// What threads tell each other beside their messages: how far the sender's stream had come, which the receiver's waits for. So
// what one thread has done before it sends is done for whoever acts on the message, on devices as on the host.
#pragma once

#include <cstdint>

namespace troupe {

// The place at which the calling thread's stream is now; 0 for a thread that has entered no device and followed none.
int64_t say_place();

// The calling thread's stream goes on only behind a place that another has said. A thread without a device passes it on.
void follow_place(int64_t place);

}  // namespace troupe
