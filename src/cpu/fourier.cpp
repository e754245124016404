// Fourier transforms of lines along one dim; see fourier_transform.hpp.
#include "cpu/fourier_transform.hpp"
#include "cpu/routine.hpp"

namespace rosin::cpu {
namespace {

// x (2, inner..., n, outer...) -> the same sizes: complex numbers as pairs. Or x (1, inner..., n, outer...): real ones.
template <class T> class FourierCall final : public Call {
 public:
  FourierCall(const CallSpec& spec, FourierAttributes how)
      : lines_(lines_of(spec.result.shape, how.dim)), real_(spec.operands[0].shape[0] == 1), inverse_(how.inverse != 0),
        transform_(lines_.size, lines_.inner == 2 ? lines_.outer : lines_.inner / 2,
                   lines_.inner == 2 ? lines_.size : 1) {
    lines_.inner /= 2;
    constexpr int64_t together = Transform<T>::together;
    pieces_ = Pieces::of(lines_.inner * lines_.outer, lines_.size * 4);
    pieces_.step = (pieces_.step + together - 1) / together * together;
  }

  size_t bytes() const override { return 512 + static_cast<size_t>(lines_.size) * 4 * sizeof(Pair<T>); }
  int64_t chunks() const override { return pieces_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const auto* x = static_cast<const T*>(data.operands[0]);
    auto* y = static_cast<T*>(data.result);
    const int64_t n = lines_.size, inner = lines_.inner, last = pieces_.last(chunk);
    const auto memory = std::make_unique_for_overwrite<Block[]>(static_cast<size_t>(transform_.blocks()));
    for (int64_t line = pieces_.first(chunk), count = 0; line < last; line += count) {
      count = inner == 1 ? last - line : std::min(last, (line / inner + 1) * inner) - line;
      const int64_t first = line / inner * n * inner + line % inner, step = inner == 1 ? n : 1;
      transform_.run({.in = {x + first * (real_ ? 1 : 2), inner, step, inverse_},
                      .real = real_,
                      .out = {y + 2 * first, inner, step, inverse_},
                      .lines = count},
                     memory.get());
    }
  }

 private:
  Lines lines_;
  bool real_, inverse_;
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
