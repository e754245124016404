// The auxiliary of relu: a bit an element, one item a byte. Read first: elements.hpp, include/rosin/backend_calls.h
// (rosin_epilogue).
#include "kernels/elements.hpp"

namespace rosin::kernels {

void write_bits(const Layout& layout, const Step& call, LaunchList& list) {
  constexpr int64_t bits_of_byte = 8;
  const int32_t values[] = {call.result, call.auxiliary};
  KernelWriter writer("bits", items_of_group, index_type(layout, values));
  const ArrayTerm x(writer, layout, call.result), bytes(writer, layout, call.auxiliary);
  std::vector<Term> sizes = size_terms(writer, layout, call.auxiliary);
  const Term rows = size_terms(writer, layout, call.result)[0];
  launch_each(list, writer, layout.views[static_cast<size_t>(call.auxiliary)].count(), [&](Term i) {
    const std::vector<Term> to = writer.coordinates(i, sizes);
    std::vector<Term> from = to;
    const Term byte = writer.variable(writer.literal(ScalarType::int32, 0));
    for (int64_t bit = 0; bit < bits_of_byte; ++bit) {
      from[0] = to[0] * bits_of_byte + bit;
      writer.when(from[0] < rows, [&] {
        const Term element = x.load(from), set = writer.literal(ScalarType::int32, static_cast<double>(1 << bit));
        writer.assign(byte, byte + writer.select(like(element, 0) < element, set, like(set, 0)));
      });
    }
    bytes.store(to, byte);
  });
}

}  // namespace rosin::kernels
