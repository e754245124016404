// Fourier transforms of lines along one dim; see fourier_transform.hpp.
#include "cpu/fourier_transform.hpp"
#include "cpu/routine.hpp"

namespace rosin::cpu {
namespace {

// x (2, inner..., n, outer...) -> the same sizes: complex numbers as pairs.
template <class T> class FourierCall final : public Call {
 public:
  FourierCall(const CallSpec& spec, FourierAttributes how)
      : lines_(lines_of(spec.operands[0].shape, how.dim)), transform_(lines_.size, how.inverse != 0),
        pieces_(Pieces::of(lines_.inner / 2 * lines_.outer, lines_.size * 16)) {
    lines_.inner /= 2;
  }

  size_t bytes() const override { return 512 + static_cast<size_t>(lines_.size) * sizeof(Pair<T>); }
  int64_t chunks() const override { return pieces_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const auto* x = static_cast<const Pair<T>*>(data.operands[0]);
    auto* y = static_cast<Pair<T>*>(data.result);
    const int64_t n = lines_.size, inner = lines_.inner;
    std::vector<Pair<T>> memory(static_cast<size_t>(2 * n + transform_.scratch()));
    Pair<T>*line = memory.data(), *found = line + n;
    for (int64_t l = pieces_.first(chunk); l < pieces_.last(chunk); ++l) {
      const int64_t first = l / inner * n * inner + l % inner;
      for (int64_t i = 0; i < n; ++i) line[i] = x[first + i * inner];
      transform_.run(line, found, found + n);
      for (int64_t i = 0; i < n; ++i) y[first + i * inner] = found[i];
    }
  }

 private:
  Lines lines_;
  Transform<T> transform_;
  Pieces pieces_;
};

}  // namespace

std::unique_ptr<Call> prepare_fourier(const CallSpec& spec) {
  const auto how = spec.attributes.as<FourierAttributes>();
  if (spec.operands[0].type == DType::Float64) return std::make_unique<FourierCall<double>>(spec, how);
  return std::make_unique<FourierCall<float>>(spec, how);
}

}  // namespace rosin::cpu
