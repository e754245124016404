// says: in a LossScale, distributed::Optimizer goes around the other rules
#include <rosin/dense.hpp>
#include <rosin/distributed.hpp>
#include <rosin/loss_scale.hpp>

auto use(const rosin::distributed::Backend& backend, const rosin::Dense& model) {
  const rosin::distributed::Optimizer inside(backend, rosin::Adam{});
  return rosin::setup(rosin::LossScale{rosin::OptimiserChain(rosin::AccumGrad{2}, inside)}, model);
}
