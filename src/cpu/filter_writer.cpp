// See filter_writer.hpp.
#include "cpu/filter_writer.hpp"

#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include <xbyak/xbyak.h>

#include "cpu/written_loop.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

using util::rdi, util::rsi, util::rdx, util::rcx, util::r8, util::r9, util::r10, util::r11, util::rax, util::eax;

constexpr int element_bytes = sizeof(float);

class FilterWriter : public CodeGenerator {
 public:
  FilterWriter(const FilterText& text, void* memory, size_t bytes) : CodeGenerator(bytes, memory), text_(text) {
    const int64_t registers = is_wide() ? 32 : 16;
    const int64_t free = registers - elements_together - (needs_mask_register() ? 1 : 0);
    holds_weights_ = text.taps + (is_wide() ? 8 : 6) <= free;
    const int64_t most = std::min(free - (holds_weights_ ? text.taps : 1), most_together);
    const int64_t unit = text.by_data ? text.stride : 1;  // tiles that are alike begin at its multiples
    const int64_t tiles = (text.results + most - 1) / most, even = (text.results + tiles - 1) / tiles;
    together_ = std::min((even + unit - 1) / unit * unit, std::max(most / unit * unit, std::min(unit, most)));
    together_ = std::min(together_, text.results);
  }

  void write() {
    mov(results, ptr[list]);
    mov(elements, ptr[list + 8]);
    mov(weights, ptr[list + 16]);
    if (text_.residual) mov(residual, ptr[list + 32]);
    imul(rows_end, rows_end, static_cast<int>(row_of_taps()));
    add(rows_end, weights);
    prepare_mask();
    write_tiles();
    vzeroupper();
    ret();
    write_constants();
  }

 private:
  static constexpr int64_t elements_together = 3;  // registers that elements are read into in turn
  static constexpr int64_t most_together = 16;     // results of a tile

  const Reg64 list = rdi, rows_end = rsi, tap = rdx, results = rcx, elements = r8, weights = r9, residual = r10,
              repeats = r11, row = rax;
  const Opmask mask = Opmask(1);

  /// AVX-512, which has masks; AVX2 keeps one in its last register.
  bool is_wide() const { return text_.block == 16; }
  Xmm vector(int64_t number) const {
    if (is_wide()) return Zmm(static_cast<int>(number));
    return Ymm(static_cast<int>(number));
  }
  bool is_part() const { return text_.lanes < text_.block; }
  bool needs_mask_register() const { return !is_wide() && is_part(); }
  Xmm mask_register() const { return vector(15); }
  int64_t vector_bytes() const { return text_.block * element_bytes; }
  int64_t row_of_taps() const { return text_.tap_rows * text_.taps * vector_bytes(); }
  int64_t pixel() const { return text_.channels * element_bytes; }

  /// Registers: the results, then weights of taps, then elements.
  Xmm sum(int64_t i) const { return vector(i); }
  Xmm weight(int64_t t) const { return vector(together_ + (holds_weights_ ? t : 0)); }
  Xmm element(int64_t turn) const {
    return vector(together_ + (holds_weights_ ? text_.taps : 1) + turn % elements_together);
  }

  void prepare_mask() {
    if (!is_part()) return;
    if (is_wide()) {
      mov(eax, (1u << text_.lanes) - 1);
      kmovw(mask, eax);
    } else {
      vmovups(mask_register(), ptr[util::rip + mask_at_]);
    }
  }

  void write_constants() {
    align(4);
    L(mask_at_);
    for (int64_t i = 0; needs_mask_register() && i < text_.block; ++i) dd(i < text_.lanes ? 0xffffffff : 0);
    L(most_at_);
    dd(std::bit_cast<uint32_t>(text_.most));
  }

  void load(const Xmm& to, const Address& from) {
    if (!is_part()) vmovups(to, from);
    else if (is_wide()) vmovups(to | mask | T_z, from);
    else vmaskmovps(to, mask_register(), from);
  }
  void store(const Address& to, const Xmm& from) {
    if (!is_part()) vmovups(to, from);
    else if (is_wide()) vmovups(to | mask, from);
    else vmaskmovps(to, mask_register(), from);
  }
  Address at(const Reg64& first, int64_t pixels) { return ptr[first + static_cast<size_t>(pixels * pixel())]; }

  /// Whether the results of a tile have all their taps, of which none lies outside.
  bool is_inside(int64_t first) const {
    if (first + together_ > text_.results) return false;
    for (int64_t r = first; r < first + together_; ++r) {
      for (int64_t t = 0; t < text_.taps; ++t) {
        const int64_t place =
            text_.by_data ? r + text_.pad - t * text_.dilation : r * text_.stride - text_.pad + t * text_.dilation;
        if (place < 0 || place >= text_.elements * (text_.by_data ? text_.stride : 1)) return false;
      }
    }
    return true;
  }

  /// Tiles inside that follow each other are alike: one loop. The last tile may compute results once more.
  void write_tiles() {
    const bool may_be_alike = !text_.by_data || together_ % text_.stride == 0;
    for (int64_t first = 0; first < text_.results;) {
      int64_t alike = 0;
      while (may_be_alike && is_inside(first + alike * together_)) ++alike;
      if (alike < 2) {
        write_tile(std::min(first, text_.results - together_));
        first += together_;
        continue;
      }
      Label again;
      mov(repeats, static_cast<size_t>(alike));
      L(again);
      write_tile(first);
      const int64_t step = together_ * pixel();
      add(results, static_cast<int>(step));
      if (text_.residual) add(residual, static_cast<int>(step));
      add(elements, static_cast<int>(text_.by_data ? step / text_.stride : step * text_.stride));
      dec(repeats);
      jnz(again, T_NEAR);
      first += alike * together_;
      moved_ += alike * together_;
    }
  }

  void write_tile(int64_t first) {
    Label next, end;
    for (int64_t i = 0; i < together_; ++i) vxorps(sum(i), sum(i), sum(i));
    mov(row, elements);
    mov(tap, weights);
    cmp(tap, rows_end);
    jge(end, T_NEAR);  // no row of taps
    L(next);
    add_row(first);
    add(row, static_cast<int>(text_.element_rows * text_.elements * pixel()));
    add(tap, static_cast<int>(row_of_taps()));
    cmp(tap, rows_end);
    jl(next, T_NEAR);
    L(end);
    finish(first);
  }

  /// The products of a row of taps: element by element, in the order of their taps.
  void add_row(int64_t first) {
    std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> uses;  // of elements: results and taps
    for (int64_t i = 0; i < together_; ++i) {
      for (int64_t t = 0; t < text_.taps; ++t) {
        const std::optional<int64_t> place = text_.element_of(first + i, t);
        if (place) uses[text_.by_data ? -*place : *place].emplace_back(i, t);
      }
    }
    for (int64_t t = 0; holds_weights_ && t < text_.taps; ++t) vmovups(weight(t), weight_at(t));
    const int64_t moved = text_.by_data ? moved_ / text_.stride : moved_ * text_.stride;
    int64_t turn = 0;
    for (const auto& [place, of_element] : uses) {
      const Xmm x = element(turn++);
      load(x, at(row, std::abs(place) - moved));
      for (const auto& [i, t] : of_element) {
        if (holds_weights_) vfmadd231ps(sum(i), x, weight(t));
        else vfmadd231ps(sum(i), x, weight_at(t));
      }
    }
  }
  Address weight_at(int64_t t) { return ptr[tap + static_cast<size_t>(t * vector_bytes())]; }

  void finish(int64_t first) {
    const Xmm other = element(0);
    if (text_.bias) {
      mov(row, ptr[list + 24]);
      load(other, ptr[row]);
      for (int64_t i = 0; i < together_; ++i) vaddps(sum(i), sum(i), other);
    }
    for (int64_t i = 0; text_.residual && i < together_; ++i) {
      const Xmm x = element(i);
      load(x, at(residual, first + i - moved_));
      vaddps(sum(i), sum(i), x);
    }
    if (text_.rectified) rectify(other);
    for (int64_t i = 0; i < together_; ++i) store(at(results, first + i - moved_), sum(i));
  }

  /// NaN and -0 stay: of two such operands the second one is taken.
  void rectify(const Xmm& bound) {
    vxorps(bound, bound, bound);
    for (int64_t i = 0; i < together_; ++i) vmaxps(sum(i), bound, sum(i));
    if (text_.most == 0) return;
    vbroadcastss(bound, ptr[util::rip + most_at_]);
    for (int64_t i = 0; i < together_; ++i) vminps(sum(i), bound, sum(i));
  }

  const FilterText& text_;
  bool holds_weights_ = false;
  int64_t together_ = 1;  // results of a tile
  int64_t moved_ = 0;     // results that the pointers have gone on
  Label mask_at_, most_at_;
};

WrittenCode written(const FilterText& text, unsigned char* buffer, size_t bytes) {
  FilterWriter writer(text, buffer, bytes);
  writer.write();
  return {writer.getSize(),
          "rosin filters of " + std::to_string(text.taps) + " taps, " + std::to_string(text.channels) + " channels",
          {}};
}

std::string key_of(const FilterText& text) {
  std::string key = "filters";
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const int64_t number : {text.block, text.lanes, text.channels, text.elements, text.results, text.taps,
                               text.stride, text.dilation, text.pad, text.tap_rows, text.element_rows}) {
    add(number);
  }
  for (const bool is : {text.by_data, text.bias, text.residual, text.rectified}) add(is);
  add(text.most);
  return key;
}

}  // namespace

int64_t filter_block() { return has_wide_code() ? 16 : 8; }

std::shared_ptr<const MachineLoop> filter_loop(const FilterText& text) {
  return shared_loop(key_of(text), [&](unsigned char* buffer, size_t bytes) { return written(text, buffer, bytes); });
}

#else

namespace rosin::cpu {

int64_t filter_block() { return 16; }
std::shared_ptr<const MachineLoop> filter_loop(const FilterText&) { return nullptr; }

#endif

std::optional<int64_t> FilterText::element_of(int64_t result, int64_t tap) const {
  const int64_t place = by_data ? result + pad - tap * dilation : result * stride - pad + tap * dilation;
  const int64_t apart = by_data ? stride : 1;
  if (place < 0 || place >= elements * apart || place % apart != 0) return {};
  return place / apart;
}

}  // namespace rosin::cpu
