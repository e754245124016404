// says: rules before ClipGlobalNorm stand before distributed::Optimizer too
#include <rosin/distributed.hpp>
#include <rosin/optim.hpp>

auto use(const rosin::distributed::Backend& backend) {
  return rosin::distributed::Optimizer(
      backend, rosin::OptimiserChain(rosin::AccumGrad{2}, rosin::ClipGlobalNorm{1}, rosin::Adam{}));
}
