// says: ClipGlobalNorm is the first rule of an OptimiserChain
#include <rosin/optim.hpp>

auto use() { return rosin::OptimiserChain(rosin::AccumGrad{2}, rosin::ClipGlobalNorm{1}, rosin::Adam{}); }
