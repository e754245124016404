// librosin_comm_tcp.so: a Star as transport. Read first: rosin/comm.h, common/ranks.hpp. Read next: star.hpp.
#include "tcp/star.hpp"

namespace rosin::transport {

const char* const transport_name = "TCP";
std::unique_ptr<Ranks> join_ranks(double timeout) { return std::make_unique<tcp::Star>(timeout); }

}  // namespace rosin::transport
