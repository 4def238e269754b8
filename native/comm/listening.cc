#include "comm/listening.h"

#if HAVE_GLOO
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "comm/store.h"
#endif

namespace troupe::comm {

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.rfind("127.", 0) == 0;
}

#if HAVE_GLOO

namespace {

// The socket, bound; -1 with errno set.
int bound_to(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  const int on = 1;
  // A port that a store before this one has left is free at once, as with c10d's own sockets.
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0) return socket;
  const int reason = errno;
  ::close(socket);
  errno = reason;
  return -1;
}

}  // namespace

void listen_at(const std::string& host, c10d::TCPStoreOptions& options) {
  if (!is_loopback(host) && (host.empty() || host != host_address())) return;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(options.port).c_str(), &wanted, &found);
  if (failed != 0) throw std::runtime_error(::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int reason = EADDRNOTAVAIL;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int socket = bound_to(*address);
    if (socket >= 0) {
      options.masterListenFd = socket;  // the store's from now on
      return;
    }
    reason = errno;
  }
  // c10d handles a port in use: it may belong to a store of this process, which both then share.
  if (reason != EADDRINUSE) throw std::runtime_error(std::strerror(reason));
}

#endif

}  // namespace troupe::comm
