// says: Lookahead stands behind ClipGlobalNorm and the rules before it
#include <rosin/array_rules.hpp>
#include <rosin/optim.hpp>

auto use() {
  return rosin::Lookahead{rosin::OptimiserChain(rosin::AccumGrad{2}, rosin::ClipGlobalNorm{1}, rosin::Adam{})};
}
