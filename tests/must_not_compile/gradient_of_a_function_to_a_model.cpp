// says: rosin: the function given to gradient must return an Array, or a tuple that begins with one
#include <rosin/dense.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

rosin::Dense slope(const rosin::Dense& model) {
  return rosin::gradient([](const rosin::Dense& m) { return m; }, model);
}
