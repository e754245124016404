// says: an OptimiserChain has one ClipGlobalNorm
#include <rosin/optim.hpp>

auto use() { return rosin::OptimiserChain(rosin::ClipGlobalNorm{1}, rosin::Adam{}, rosin::ClipGlobalNorm{1}); }
