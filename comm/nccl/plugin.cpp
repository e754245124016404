// librosin_comm_nccl.so: a World as transport. Read first: rosin/comm.h, common/ranks.hpp. Read next: world.hpp.
#include "nccl/world.hpp"

namespace rosin::transport {

const char* const transport_name = "NCCL";
std::unique_ptr<Ranks> join_ranks(double timeout) { return std::make_unique<nccl::World>(timeout); }

}  // namespace rosin::transport
