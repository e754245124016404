// See sent_constants.hpp.
#include "graph/sent_constants.hpp"

#include <algorithm>
#include <cstring>

#include "base/of_thread.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin {

SentConstants& SentConstants::of_thread() { return rosin::of_thread<SentConstants>(); }

Memory* SentConstants::find(const Array& x, int position) {
  const size_t bytes = bytes_of(x.dtype(), x.shape());
  const auto is_copy = [&](const Sent& sent) {
    return sent.there.node()->device == position && sent.here.dtype() == x.dtype() && sent.here.count() == x.count() &&
           std::memcmp(sent.here.node()->data(), x.node()->data(), bytes) == 0;
  };
  const auto found = std::find_if(sent_.begin(), sent_.end(), is_copy);
  if (found == sent_.end()) return nullptr;
  std::rotate(found, found + 1, sent_.end());
  Memory* const memory = sent_.back().there.node()->buffer;
  retain(memory);
  return memory;
}

void SentConstants::keep(const Array& x, const Array& there) {
  if (sent_.size() == most) sent_.erase(sent_.begin());
  sent_.push_back({x, there});
}

}  // namespace rosin
