// See loss_parts.hpp.
#include "loss/loss_parts.hpp"

#include <algorithm>
#include <string>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "graph/node.hpp"
#include "graph/refuse_type.hpp"

namespace rosin {
namespace {

int64_t size_at(const Shape& shape, int dim) { return dim < shape.rank() ? shape[dim] : 1; }

}  // namespace

void check_sizes(const char* loss, const Array& yhat, const Array& y, Numbers numbers) {
  const bool given = !yhat.is_nothing() && !y.is_nothing();
  for (const Array* x : {&yhat, &y}) {
    if (given && numbers == Numbers::real && is_complex(x->dtype())) refuse_type(loss, x->dtype());
  }
  if (given && y.node()->weak) return;
  bool fits = given;
  for (int d = 0; fits && d < std::max(yhat.rank(), y.rank()); ++d) {
    fits = size_at(yhat.shape(), d) == size_at(y.shape(), d);
  }
  if (fits) return;
  const auto text = [](const Array& x) { return x.is_nothing() ? std::string("nothing") : to_string(x.shape()); };
  throw Error(ErrorKind::shape, std::string(loss) + ": loss function expects size(yhat) = " + text(yhat) +
                                    " to match size(y) = " + text(y) +
                                    "; sizes do not broadcast here: reshape one, or onehot(y, classes) for labels");
}

Array labels_for(const Array& yhat, const Array& y) {
  return is_float(yhat.dtype()) && !is_float(y.dtype()) && !is_complex(y.dtype()) ? cast(y, yhat.dtype()) : y;
}

}  // namespace rosin
