// says: MixedPrecision optimisers should wrap the entire OptimiserChain, not be inside it
#include <rosin/optim.hpp>

auto use() { return rosin::OptimiserChain(rosin::ClipGrad{1}, rosin::MixedPrecision(rosin::Adam{})); }
