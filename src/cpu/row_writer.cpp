// See row_writer.hpp.
#include "cpu/row_writer.hpp"

#include "cpu/written_loop.hpp"

namespace rosin::cpu {
namespace {

/// Results that have registers, so many each, beside weights and an element (and the mask of AVX2).
constexpr int64_t most_together(int64_t vectors, int64_t block) {
  return (registers_of(block) - vectors - (block == 16 ? 1 : 2)) / vectors;
}

/// Of nearly equal parts that have at most so many.
constexpr int64_t even_part(int64_t count, int64_t most) {
  const int64_t parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

}  // namespace
}  // namespace rosin::cpu

#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)

#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "cpu/bfloat_code.hpp"
#include "cpu/vector_code.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

using util::rdi, util::rsi, util::rdx, util::rcx, util::r8, util::r9, util::r10, util::r11, util::rax, util::eax;

constexpr int64_t line_bytes = 64;

class RowWriter : public VectorCode {
 public:
  RowWriter(const RowText& text, void* memory, size_t bytes)
      : VectorCode(text.block, text.lanes % text.block, memory, bytes), text_(text), vectors_(text.vectors()) {
    const int64_t free = registers_of(text.block) - elements_together() - (needs_mask_register() ? 1 : 0);
    holds_weights_ = text.depth == 0 && text.taps + (is_wide() ? 8 : 6) <= free;
    const int64_t most =
        text.depth == 0 ? std::min(free - weight_registers(), most_filtered) : most_together(vectors_, text.block);
    const int64_t unit = text.by_data ? text.stride : 1;  // tiles that are alike begin at its multiples
    const int64_t even = even_part(text.results, most);
    together_ = std::min((even + unit - 1) / unit * unit, std::max(most / unit * unit, std::min(unit, most)));
    together_ = std::min(together_, text.results);
  }

  void write() {
    mov(results, ptr[list]);
    mov(elements, ptr[list + 8]);
    mov(tap, ptr[list + 16]);
    if (text_.ahead > 0) mov(ahead, ptr[list + 40]);
    if (text_.residual) {
      mov(residual, ptr[list + 32]);
      sub(residual, results);
    }
    imul(rows_end, rows_end, static_cast<int>(row_of_taps()));
    add(rows_end, tap);
    prepare_mask();
    write_tiles();
    vzeroupper();
    ret();
    write_constants();
  }

 private:
  static constexpr int64_t most_filtered = 16;  // results of a tile, where each lane is by itself
  static constexpr int64_t in_turn = 3;         // registers that elements are read into then

  /// `residual`: from results on.
  const Reg64 list = rdi, rows_end = rsi, tap = rdx, results = rcx, elements = r8, ahead = r9, residual = r10,
              depth = r11, row = rax;

  /// Whether the lanes of a vector are not all wanted: of the last one.
  bool is_part(int64_t v) const { return v + 1 == vectors_ && has_part(); }
  bool needs_mask_register() const { return !is_wide() && has_part(); }
  int64_t row_of_taps() const { return text_.tap_rows * text_.taps * text_.tap_weights() * element_bytes; }
  int64_t element_step() const { return text_.element_step * text_.bytes(); }
  int64_t result_step() const { return text_.result_step * text_.bytes(); }

  /// Registers: the results, then weights, then elements.
  int64_t elements_together() const { return text_.depth > 0 ? 1 : in_turn + (text_.spread > 1 ? 1 : 0); }
  int64_t weight_registers() const { return text_.depth > 0 ? vectors_ : holds_weights_ ? text_.taps : 1; }
  Xmm sum(int64_t i, int64_t v = 0) const { return vector(i * vectors_ + v); }
  Xmm weight(int64_t number) const { return vector(together_ * vectors_ + number); }
  Xmm element(int64_t turn) const {
    return vector(together_ * vectors_ + weight_registers() + turn % elements_together());
  }

  void write_constants() {
    write_mask();
    L(most_at_);
    dd(std::bit_cast<uint32_t>(text_.most));
    L(one_at_);
    dd(1);
    L(below_half_at_);
    dd(0x7fff);
    L(quiet_at_);
    dd(0x400000);
    L(places_at_);
    for (int64_t c = 0; text_.spread > 1 && c < text_.spread; ++c) {
      for (int64_t i = 0; i < text_.block; ++i) dd(static_cast<uint32_t>(i / text_.spread * text_.spread + c));
    }
  }

  /// Halves become Float32.
  void load_element(const Xmm& to, const Address& from) {
    if (text_.packing == Packing::none) return load(to, from, is_part(0));
    const Zmm out(to.getIdx()), some = is_part(0) ? out | mask() | T_z : out;
    if (text_.packing == Packing::half) return vcvtph2ps(some, from);
    vpmovzxwd(some, from);
    vpslld(out, out, bfloat_shift);
  }
  /// Rounded to nearest even where they are halves. A NaN stays one, and is quiet.
  void store_result(const Address& to, const Xmm& from, int64_t v) {
    if (text_.packing == Packing::none) return store(to, from, is_part(v));
    const Zmm x(from.getIdx()), bits(element(0).getIdx());
    const Address place = is_part(v) ? to | mask() : to;
    if (text_.packing == Packing::half) return vcvtps2ph(place, x, 0);
    write_rounding(*this, bits, x, Opmask(2), {number(one_at_), number(below_half_at_), number(quiet_at_)});
    vpsrld(bits, bits, bfloat_shift);
    vpmovdw(place, bits);
  }
  Address number(const Label& label) { return ptr_b[util::rip + label]; }
  Address bytes_at(const RegExp& first, int64_t bytes) { return ptr[first + static_cast<size_t>(bytes)]; }
  void go_bytes(const Reg64& pointer, int64_t bytes) {
    if (bytes != 0) add(pointer, static_cast<uint32_t>(bytes));
  }

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

  /// Tiles inside that follow each other are alike: one loop.
  void write_tiles() {
    const bool may_be_alike = !text_.by_data || together_ % text_.stride == 0;
    for (int64_t first = 0; first < text_.results;) {
      int64_t alike = 0;
      while (may_be_alike && is_inside(first + alike * together_)) ++alike;
      if (alike < 2) {
        write_tile(first, std::min(together_, text_.results - first));
        first += together_;
        continue;
      }
      Label again;
      mov(qword[list + 72], static_cast<size_t>(alike));
      L(again);
      write_tile(first, together_);
      const int64_t step = together_ * element_step();
      go_bytes(results, together_ * result_step());
      go_bytes(elements, text_.by_data ? step / text_.stride : step * text_.stride);
      dec(qword[list + 72]);
      jnz(again, T_NEAR);
      first += alike * together_;
      moved_ += alike * together_;
    }
  }

  void write_tile(int64_t first, int64_t count) {
    Label next, end;
    for (int64_t i = 0; i < count * vectors_; ++i) vxorps(vector(i), vector(i), vector(i));
    mov(row, elements);
    mov(tap, ptr[list + 16]);
    cmp(tap, rows_end);
    jge(end, T_NEAR);  // no row of taps
    L(next);
    if (text_.depth > 0) sum_row(first, count);
    else filter_row(first, count);
    go_bytes(row, text_.element_rows * text_.elements * element_step());
    cmp(tap, rows_end);
    jl(next, T_NEAR);
    L(end);
    finish(first, count);
  }

  /// Bytes from the row's pointer to an element.
  int64_t place_of(int64_t element) const {
    return (element - (text_.by_data ? moved_ / text_.stride : moved_ * text_.stride)) * element_step();
  }

  /// The products of a row of taps: element by element, in the order of their taps.
  void filter_row(int64_t first, int64_t count) {
    std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> uses;  // of elements: results and taps
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t t = 0; t < text_.taps; ++t) {
        const std::optional<int64_t> place = text_.element_of(first + i, t);
        if (place) uses[text_.by_data ? -*place : *place].emplace_back(i, t);
      }
    }
    for (int64_t c = 0; c < text_.spread; ++c) filter_channel(uses, c);
    go_bytes(tap, row_of_taps());
  }

  /// By one channel of each lane's neighbours.
  void filter_channel(const std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>>& uses, int64_t c) {
    const auto weight_at = [&](int64_t t) { return bytes_at(tap, (t * text_.spread + c) * vector_bytes()); };
    for (int64_t t = 0; holds_weights_ && t < text_.taps; ++t) vmovups(weight(t), weight_at(t));
    const Xmm places = element(in_turn);
    if (text_.spread > 1) vmovups(places, ptr[util::rip + places_at_ + static_cast<int>(c * vector_bytes())]);
    int64_t turn = 0;
    for (const auto& [place, of_element] : uses) {
      const Xmm x = element(turn++ % in_turn);
      load_element(x, bytes_at(row, place_of(std::abs(place))));
      if (text_.spread > 1) permute(x, places);
      for (const auto& [i, t] : of_element) {
        if (holds_weights_) vfmadd231ps(sum(i), x, weight(t));
        else vfmadd231ps(sum(i), x, weight_at(t));
      }
    }
  }
  /// The same of all channels: tap by tap, some channels at a time.
  void sum_row(int64_t first, int64_t count) {
    constexpr int64_t turn = RowText::channels_together;
    const int64_t of_channel = vectors_ * vector_bytes(), turns = text_.depth / turn, rest = text_.depth % turn;
    for (int64_t t = 0; t < text_.taps; ++t) {
      std::vector<std::pair<int64_t, int64_t>> uses;  // results, and where their elements are
      for (int64_t i = 0; i < count; ++i) {
        if (const auto place = text_.element_of(first + i, t)) uses.emplace_back(i, place_of(*place));
      }
      if (uses.empty()) {
        go_bytes(tap, text_.depth * of_channel);
        continue;
      }
      if (turns > 0) {
        Label again;
        mov(depth, static_cast<size_t>(turns));
        L(again);
        for (int64_t c = 0; c < turn; ++c) sum_channel(uses, c);
        for (int64_t line = 0; line < text_.ahead; ++line) prefetcht1(bytes_at(ahead, line * line_bytes));
        go_bytes(ahead, text_.ahead * line_bytes);
        go_bytes(row, turn * element_bytes);
        go_bytes(tap, turn * of_channel);
        dec(depth);
        jnz(again, T_NEAR);
      }
      for (int64_t c = 0; c < rest; ++c) sum_channel(uses, c);
      go_bytes(row, -turns * turn * element_bytes);
      go_bytes(tap, rest * of_channel);
    }
    go_bytes(tap, (text_.tap_rows - 1) * text_.taps * text_.depth * of_channel);
  }

  void sum_channel(const std::vector<std::pair<int64_t, int64_t>>& uses, int64_t c) {
    for (int64_t v = 0; v < vectors_; ++v) vmovups(weight(v), bytes_at(tap, (c * vectors_ + v) * vector_bytes()));
    for (const auto& [i, place] : uses) {
      vbroadcastss(element(0), bytes_at(row, place + c * element_bytes));
      for (int64_t v = 0; v < vectors_; ++v) vfmadd231ps(sum(i, v), element(0), weight(v));
    }
  }

  void finish(int64_t first, int64_t count) {
    const Xmm other = element(0);
    const auto by_channel = [&](bool is, int64_t number, auto&& step) {
      if (is) mov(row, ptr[list + static_cast<size_t>(number * 8)]);
      for (int64_t v = 0; is && v < vectors_; ++v) {
        load(other, bytes_at(row, v * vector_bytes()), is_part(v));
        for (int64_t i = 0; i < count; ++i) step(sum(i, v));
      }
    };
    by_channel(text_.bias, 3, [&](const Xmm& x) { vaddps(x, x, other); });
    by_channel(text_.center, 6, [&](const Xmm& x) { vsubps(x, x, other); });
    by_channel(text_.factor, 7, [&](const Xmm& x) { vmulps(x, x, other); });
    by_channel(text_.shift, 8, [&](const Xmm& x) { vaddps(x, x, other); });
    const auto place = [&](int64_t i, int64_t v) {
      return (first + i - moved_) * result_step() + v * text_.block * text_.bytes();
    };
    const auto each = [&](auto&& visit) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t v = 0; v < vectors_; ++v) visit(i, v);
      }
    };
    each([&](int64_t i, int64_t v) {
      if (!text_.residual) return;
      load(other, bytes_at(results + residual, place(i, v)), is_part(v));
      vaddps(sum(i, v), sum(i, v), other);
    });
    if (text_.rectified) rectify(other, count * vectors_);
    each([&](int64_t i, int64_t v) { store_result(bytes_at(results, place(i, v)), sum(i, v), v); });
  }

  /// NaN and -0 stay: of two such operands the second one is taken.
  void rectify(const Xmm& bound, int64_t registers) {
    vxorps(bound, bound, bound);
    for (int64_t i = 0; i < registers; ++i) vmaxps(vector(i), bound, vector(i));
    if (text_.most == 0) return;
    vbroadcastss(bound, ptr[util::rip + most_at_]);
    for (int64_t i = 0; i < registers; ++i) vminps(vector(i), bound, vector(i));
  }

  const RowText& text_;
  int64_t vectors_;
  bool holds_weights_ = false;
  int64_t together_ = 1;  // results of a tile
  int64_t moved_ = 0;     // results that the pointers have gone on
  Label most_at_, one_at_, below_half_at_, quiet_at_, places_at_;
};

WrittenCode written(const RowText& text, unsigned char* buffer, size_t bytes) {
  RowWriter writer(text, buffer, bytes);
  writer.write();
  const std::string what = text.depth > 0 ? "rosin convolution of " : "rosin filters of ";
  return {writer.getSize(),
          what + std::to_string(text.taps) + " taps in a row, " + std::to_string(text.element_step) + " channels",
          {}};
}

std::string key_of(const RowText& text) {
  std::string key = "row";
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const int64_t number :
       {text.block, text.lanes, text.depth, text.spread, text.result_step, text.element_step, text.elements,
        text.results, text.taps, text.stride, text.dilation, text.pad, text.tap_rows, text.element_rows, text.ahead}) {
    add(number);
  }
  for (const bool is : {text.by_data, text.bias, text.center, text.factor, text.shift, text.residual, text.rectified}) {
    add(is);
  }
  add(text.most);
  add(text.packing);
  return key;
}

}  // namespace

int64_t row_block() { return has_wide_code() ? 16 : 8; }

std::shared_ptr<const MachineLoop> row_loop(const RowText& text) {
  return shared_loop(key_of(text), [&](unsigned char* buffer, size_t bytes) { return written(text, buffer, bytes); });
}

#else

namespace rosin::cpu {

int64_t row_block() { return 16; }
std::shared_ptr<const MachineLoop> row_loop(const RowText&) { return nullptr; }

#endif

int64_t most_row_vectors(int64_t block) { return block == 16 ? 4 : 2; }

int64_t row_tiles(int64_t results, int64_t vectors, int64_t block) {
  const int64_t most = most_together(vectors, block);
  return (results + most - 1) / most;
}

int64_t row_cost(int64_t results, int64_t vectors, int64_t block) {
  if (vectors == 0) return 0;
  return 2 * results * vectors + results + 2 * row_tiles(results, vectors, block) * vectors;
}

std::optional<int64_t> RowText::element_of(int64_t result, int64_t tap) const {
  const int64_t place = by_data ? result + pad - tap * dilation : result * stride - pad + tap * dilation;
  const int64_t apart = by_data ? stride : 1;
  if (place < 0 || place >= elements * apart || place % apart != 0) return {};
  return place / apart;
}

}  // namespace rosin::cpu
