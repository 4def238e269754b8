// Places in streams, which travel beside messages: the receiver's stream waits for the place that the sender's stream had reached.
// So work that a thread issued before it sent is done before the receiver acts on the message, on devices as on the host.
#pragma once

#include <cstdint>

namespace troupe {

// The place at which the calling thread's stream is now; 0 for a thread that has entered no device and followed none.
int64_t say_place();

// Makes the calling thread's stream wait for a place that another thread has said. A thread without a device passes the place on.
void follow_place(int64_t place);

}  // namespace troupe
