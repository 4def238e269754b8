#include "core/autograd/autocast.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/device/device.h"
#include "core/dispatch/meter.h"
#include "core/torch_version.h"

namespace troupe {
#if TROUPE_TORCH_AT_LEAST(2, 4)
namespace {

c10::DeviceType cast_on() { return meters() ? c10::DeviceType::HPU : compute_device().type(); }

}  // namespace
#endif

c10::optional<at::ScalarType> autocast_dtype() {
#if TROUPE_TORCH_AT_LEAST(2, 4)
  const c10::DeviceType type = cast_on();
  if (!at::autocast::is_autocast_enabled(type)) return c10::nullopt;
  return at::autocast::get_autocast_dtype(type);
#else
  if (!at::autocast::is_cpu_enabled()) return c10::nullopt;
  return at::autocast::get_autocast_cpu_dtype();
#endif
}

c10::optional<at::ScalarType> set_autocast(c10::optional<at::ScalarType> dtype) {
  const auto before = autocast_dtype();
  at::autocast::set_autocast_cache_enabled(false);
#if TROUPE_TORCH_AT_LEAST(2, 4)
  const c10::DeviceType type = cast_on();
  if (dtype) at::autocast::set_autocast_dtype(type, *dtype);
  at::autocast::set_autocast_enabled(type, dtype.has_value());
  // A tensor brings its device's key with it; those without memory have none to bring.
  if (meters()) c10::impl::tls_set_dispatch_key_included(kMeteredAutocast, dtype.has_value());
#else
  if (dtype) at::autocast::set_autocast_cpu_dtype(*dtype);
  at::autocast::set_cpu_enabled(dtype.has_value());
#endif
  return before;
}

}  // namespace troupe
