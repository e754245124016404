// See few_writer.hpp.
#include "cpu/few_writer.hpp"

#include <algorithm>

#include "cpu/written_loop.hpp"

#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)

#include <string>

#include "cpu/vector_code.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

using util::rdi, util::rsi, util::rdx, util::rcx, util::r8, util::r9, util::r10, util::r11, util::rax, util::eax;

class FewWriter : public VectorCode {
 public:
  FewWriter(const FewText& text, void* memory, size_t bytes)
      : VectorCode(text.block, text.results * text.channels % text.block, memory, bytes), text_(text) {}

  void write_repeating() {
    Label next_row;
    const int64_t phases = text_.phases(), all = text_.repeated();
    for (int64_t p = 0; p < phases; ++p)
      vmovups(vector(p), ptr[util::rip + places_at_ + static_cast<int>(p * text_.block * element_bytes)]);
    const Xmm x = vector(phases), zero = vector(phases + 1);
    clear(zero);
    mov(to, ptr[list]);
    mov(from, ptr[list + 8]);
    L(next_row);
    for (int64_t place = 0; place < text_.first_at(); place += text_.block) vmovups(at(to, place), zero);
    for (int64_t u = 0; u * text_.block < all; ++u) {
      const int64_t first = u * text_.block / text_.channels;
      load_some(x, at(from, first), text_.elements - first);
      permute_some(x, vector(u % phases), all - u * text_.block);
      vmovups(at(to, text_.first_at() + u * text_.block), x);
    }
    for (int64_t place = text_.repeated_end(); place < text_.pitch(); place += text_.block)
      vmovups(at(to, place), zero);
    go_on(from, text_.elements);
    go_on(to, text_.pitch());
    dec(rows);
    jnz(next_row, T_NEAR);
    end();
    write_places();
  }

  void write_sums(int64_t together) {
    prepare_mask();
    const int64_t most = (text_.free_registers() - 1 - together) / together;  // beside an element and weights
    const int64_t tiles = (text_.vectors() + most - 1) / most;
    together_ = together;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      first_ = text_.vectors() * tile / tiles;
      count_ = text_.vectors() * (tile + 1) / tiles - first_;
      write_tile();
    }
    end();
  }

  void write_weights(int64_t phase, int64_t first_tap, int64_t count) {
    Label next_row;
    prepare_mask();
    for (int64_t k = 0; k < text_.tap_rows * count; ++k) clear(vector(k));
    mov(elements, ptr[list + 8]);
    mov(table, ptr[list + 16]);
    L(next_row);
    if (keeps_rows()) {
      for (int64_t row = 0; row < text_.tap_rows; ++row) mov(of_row(row), under(row));
    }
    for (int64_t v = phase; v < text_.vectors(); v += text_.phases()) add_register(v, first_tap, count);
    go_on(elements, text_.pitch());
    add(table, static_cast<uint32_t>(text_.tap_rows * 8));
    dec(rows);
    jnz(next_row, T_NEAR);
    mov(results, ptr[list]);
    for (int64_t k = 0; k < text_.tap_rows * count; ++k) {
      vaddps(vector(k), vector(k), at(results, k * text_.block));
      vmovups(at(results, k * text_.block), vector(k));
    }
    end();
  }

 private:
  const Reg64 list = rdi, rows = rsi, elements = rcx, weights = r8, results = r9, left = r10, bias = r11;
  const Reg64 from = r8, to = r9, table = r8;

  /// Whether not all lanes of a register are results: of the last one.
  bool is_part(int64_t v) const { return v + 1 == text_.vectors() && has_part(); }
  void end() {
    vzeroupper();
    ret();
    write_mask();
  }

  // --- repeated elements: those of a register are read side by side ---
  /// The first `there` lanes; others are 0.
  void load_some(const Xmm& x, const Address& from_memory, int64_t there) {
    if (there >= text_.block) vmovups(x, from_memory);
    else if (is_wide()) vmovups(x | mask_of(there) | T_z, from_memory);
    else vmaskmovps(x, narrow_mask_of(there), from_memory);
  }
  /// The lane that each one wants; 0 from lane `wanted` on.
  void permute_some(const Xmm& x, const Xmm& places, int64_t wanted) {
    permute(x, places);
    if (wanted >= text_.block) return;
    if (is_wide()) vmovaps(Zmm(x.getIdx()) | mask_of(wanted) | T_z, Zmm(x.getIdx()));
    else vandps(x, x, narrow_mask_of(wanted));
  }
  Opmask mask_of(int64_t lanes) {
    mov(eax, (1u << lanes) - 1);
    kmovw(mask(), eax);
    return mask();
  }
  Xmm narrow_mask_of(int64_t lanes) {
    vmovups(mask_register(), ptr[util::rip + masks_at_ + static_cast<int>((text_.block - lanes) * element_bytes)]);
    return mask_register();
  }
  void write_places() {
    L(places_at_);
    for (int64_t i = 0; i < text_.phases() * text_.block; ++i) {
      const int64_t first = i / text_.block * text_.block / text_.channels;
      dd(static_cast<uint32_t>(i / text_.channels - first));
    }
    L(masks_at_);
    for (int64_t i = 0; i < 2 * text_.block; ++i) dd(i < text_.block ? 0xffffffff : 0);
  }

  // --- sums: those of a tile are in registers, of each row its own ---
  Xmm sum(int64_t row, int64_t v) const { return vector(row * count_ + v - first_); }
  Xmm element() const { return vector(together_ * count_); }
  Xmm weight(int64_t row) const { return vector(together_ * count_ + 1 + row); }

  /// A row of elements is under a row of taps for the first row of results, the one before for the second, and so on.
  void write_tile() {
    for (int64_t k = 0; k < together_ * count_; ++k) clear(vector(k));
    mov(elements, ptr[list + 8]);
    mov(weights, ptr[list + 16]);
    const auto first = [&](int64_t row) { return std::max<int64_t>(0, row - text_.tap_rows + 1); };
    const auto last = [&](int64_t row) { return std::min(row + 1, together_); };
    for (int64_t row = 0, alike = 0; row < text_.tap_rows + together_ - 1; row += alike) {
      for (alike = 1; first(row + alike) == first(row) && last(row + alike) == last(row); ++alike) {}
      write_rows(alike, first(row), last(row));
    }
    finish();
  }

  /// Some rows of elements, for rows [first, last) of results.
  void write_rows(int64_t count, int64_t first, int64_t last) {
    Label next;
    if (count > 1) mov(left, static_cast<size_t>(count));
    L(next);
    for (int64_t tap = 0; tap < text_.taps; ++tap) {
      for (int64_t phase = 0; phase < text_.phases(); ++phase) add_products(tap, phase, first, last);
    }
    go_on(elements, text_.pitch());
    go_on(weights, text_.row_weights());
    if (count == 1) return;
    dec(left);
    jnz(next, T_NEAR);
  }

  void add_products(int64_t tap, int64_t phase, int64_t first, int64_t last) {
    const int64_t place = (tap * text_.phases() + phase) * text_.block;
    const int64_t begin = first_ + (phase - first_ % text_.phases() + text_.phases()) % text_.phases();
    if (begin >= first_ + count_) return;
    for (int64_t row = first; row < last; ++row) vmovups(weight(row), at(weights, place - row * text_.row_weights()));
    for (int64_t v = begin; v < first_ + count_; v += text_.phases()) {
      vmovups(element(), at(elements, text_.read_at(tap) + v * text_.block));
      for (int64_t row = first; row < last; ++row) vfmadd231ps(sum(row, v), element(), weight(row));
    }
  }

  void finish() {
    if (text_.bias) mov(bias, ptr[list + 24]);
    mov(results, ptr[list]);
    if (text_.rectified) clear(element());
    for (int64_t row = 0; row < together_; ++row) {
      for (int64_t v = first_; v < first_ + count_; ++v) {
        const Xmm x = sum(row, v);
        if (text_.bias) vaddps(x, x, at(bias, v % text_.phases() * text_.block));
        if (text_.rectified) vmaxps(x, element(), x);  // NaN and -0 stay
        store(at(results, row * text_.results * text_.channels + v * text_.block), x, is_part(v));
      }
    }
  }

  // --- gradients by weights: sums of taps, then the gradients under rows of taps, then elements ---
  Address under(int64_t row) { return ptr[table + static_cast<size_t>(row * 8)]; }
  /// Whether registers hold where the rows of gradients stand.
  bool keeps_rows() const { return text_.tap_rows <= 5; }
  Reg64 of_row(int64_t row) const {
    const Reg64 kept[] = {rdx, r9, r10, r11, rax};
    return keeps_rows() ? kept[row] : rax;
  }

  void add_register(int64_t v, int64_t first_tap, int64_t count) {
    const int64_t first_row = text_.tap_rows * count;
    for (int64_t row = 0; row < text_.tap_rows; ++row) {
      if (!keeps_rows()) mov(of_row(row), under(row));
      load(vector(first_row + row), at(of_row(row), v * text_.block), is_part(v));
    }
    const Xmm x = vector(first_row + text_.tap_rows);
    for (int64_t tap = 0; tap < count; ++tap) {
      vmovups(x, at(elements, text_.read_at(first_tap + tap) + v * text_.block));
      for (int64_t row = 0; row < text_.tap_rows; ++row)
        vfmadd231ps(vector(row * count + tap), x, vector(first_row + row));
    }
  }

  const FewText& text_;
  int64_t together_ = 1, first_ = 0, count_ = 0;  // rows of results; registers of a tile
  Label places_at_, masks_at_;
};

std::string key_of(const FewText& text, const char* kind, std::initializer_list<int64_t> more) {
  std::string key = kind;
  const auto add = [&](int64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); };
  for (const int64_t number : {text.block, text.channels, text.elements, text.results, text.pad, text.taps,
                               text.tap_rows, int64_t{text.bias}, int64_t{text.rectified}}) {
    add(number);
  }
  for (const int64_t number : more) add(number);
  return key;
}

template <class Write>
std::shared_ptr<const MachineLoop> loop_of(const FewText& text, const std::string& key, const char* what, Write write) {
  return shared_loop(key, [&](unsigned char* buffer, size_t bytes) {
    FewWriter writer(text, buffer, bytes);
    write(writer);
    return WrittenCode{writer.getSize(), what + std::to_string(text.channels) + " channels", {}};
  });
}

}  // namespace

std::shared_ptr<const MachineLoop> repeating_loop(const FewText& text) {
  return loop_of(text, key_of(text, "repeat", {}), "rosin elements repeated for ",
                 [](FewWriter& writer) { writer.write_repeating(); });
}

std::shared_ptr<const MachineLoop> sums_loop(const FewText& text, int64_t together) {
  return loop_of(text, key_of(text, "few", {together}), "rosin convolution to ",
                 [&](FewWriter& writer) { writer.write_sums(together); });
}

std::shared_ptr<const MachineLoop> few_weights_loop(const FewText& text, int64_t phase, int64_t first_tap,
                                                    int64_t count) {
  return loop_of(text, key_of(text, "few weights", {phase, first_tap, count}), "rosin gradient by weights of ",
                 [&](FewWriter& writer) { writer.write_weights(phase, first_tap, count); });
}

#else

namespace rosin::cpu {

std::shared_ptr<const MachineLoop> repeating_loop(const FewText&) { return nullptr; }
std::shared_ptr<const MachineLoop> sums_loop(const FewText&, int64_t) { return nullptr; }
std::shared_ptr<const MachineLoop> few_weights_loop(const FewText&, int64_t, int64_t, int64_t) { return nullptr; }

#endif

int64_t FewText::pitch() const {
  const int64_t read = read_at(taps - 1) + vectors() * block;
  return std::max((read + block - 1) / block * block, repeated_end());
}

int64_t FewText::free_registers() const { return registers_of(block) - (block == 16 ? 0 : 1); }

int64_t most_taps_together(const FewText& text) {
  return std::max<int64_t>(0, std::min(text.taps, (text.free_registers() - 1) / text.tap_rows - 1));
}

}  // namespace rosin::cpu
