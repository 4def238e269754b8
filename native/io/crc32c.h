// CRC-32C (Castagnoli), the checksum of iSCSI, ext4 and TFRecord: it finds every error of up to 32 neighbouring bits, and
// processors compute it as fast as they read memory. RFC 3720, appendix B.4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

// The checksum of `size_bytes` bytes that follow those whose checksum is `before` (0: nothing). Of "123456789": e3069283.
uint32_t crc32c(const void* bytes, size_t size_bytes, uint32_t before = 0);

namespace detail {

// The two ways to compute it, for tests; `crc32c` takes the faster one that the processor has.
uint32_t crc32c_by_table(const void* bytes, size_t size_bytes, uint32_t before);
bool crc32c_has_instruction();
uint32_t crc32c_by_instruction(const void* bytes, size_t size_bytes, uint32_t before);

}  // namespace detail
}  // namespace troupe
