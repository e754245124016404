// Pooling of images of one channel, and so of any images in logical order: a plane at a time, in blocks of padded rows,
// so that neighbouring windows are computed side by side whatever their stride. The bits are those of pooling.cpp,
// which has the channels side by side. Read after plane_rows.hpp.
#include <algorithm>
#include <limits>
#include <vector>

#include "engines/plane_rows.hpp"
#include "engines/tile.hpp"

namespace rosin::engines {

namespace {

Windows windows_of(const PoolSpec& spec, int dim) {
  if (dim >= spec.spatial) return {};
  Windows windows;
  windows.in = spec.in[dim];
  windows.windows = spec.out[dim];
  windows.taps = spec.kernel[dim];
  windows.stride = spec.stride[dim];
  windows.dilation = spec.dilation[dim];
  windows.pad = spec.pad_low[dim];
  return windows;
}

bool is_maximum(PoolKind kind) { return kind == PoolKind::max_forward || kind == PoolKind::max_backward; }

/// What both directions know of a plane.
template <class T> class Planes : public VendorCall {
 public:
  Planes(const PoolSpec& spec, T outside)
      : kind_(spec.kind), planes_(spec.batch), w_(windows_of(spec, 0)), h_(windows_of(spec, 1)), rows_(w_, h_, {}, 1),
        table_(tile_kernels_for(w_.windows * int64_t{sizeof(T)})), outside_(outside) {
    const Extent kernel = extent_of(spec.kernel, spec.spatial, 1);
    for (int64_t tap = 0; tap < kernel.count(); ++tap)
      offsets_.push_back(rows_.offset({tap % kernel.w, tap / kernel.w, 0}, 0));
    step_ = images_per_chunk(planes_, (image() + pooled() * kernel.count()), 2);
    chunks_ = (planes_ + step_ - 1) / step_;
  }

  const char* engine() const noexcept override { return "planes"; }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    T* const places = static_cast<T*>(scratch);
    start(places);
    for (int64_t plane = chunk * step_; plane < std::min(planes_, (chunk + 1) * step_); ++plane)
      run_plane(plane, buffers, places);
  }

 protected:
  int64_t image() const { return w_.in * h_.in; }
  int64_t pooled() const { return w_.windows * h_.windows; }
  const TypedKernels<T>& kernels() const { return table_.of<T>(); }

  /// Asks for what the next block reads, while this one is computed: images beyond the caches then come in 0.6 to 0.8
  /// of the time (Zen 5, 13 MB and more), those within them in up to 1.05.
  void ask(const VendorBuffers& buffers, int64_t plane, int64_t first, int64_t rows) const {
    constexpr int64_t cached = 8 << 20, line = 64 / int64_t{sizeof(T)};
    const int64_t step = h_.stride * w_.in, all = planes_ * image();
    if (all * int64_t{sizeof(T)} < cached) return;
    const T* const x = static_cast<const T*>(buffers.first);
    const int64_t begin = plane * image() + (first + rows) * step;
    for (int64_t at = begin; at < std::min(all, begin + rows * step); at += line) {
      __builtin_prefetch(x + at);
      asm volatile("");  // else g++ -Os takes the function for one without effect
    }
  }

  virtual void start(T* places) const = 0;
  virtual void run_plane(int64_t plane, const VendorBuffers& buffers, T* places) const = 0;

  PoolKind kind_;
  int64_t planes_;
  Windows w_, h_;
  PaddedRows<T> rows_;
  const TileKernels& table_;
  T outside_;                     // what stands for padding
  std::vector<int64_t> offsets_;  // of taps, in places

 private:
  int64_t step_ = 1;
};

template <class T> class PlanePool final : public Planes<T> {
 public:
  PlanePool(const PoolSpec& spec, T least) : Planes<T>(spec, is_maximum(spec.kind) ? least : T(0)) {
    this->scratch_bytes_ = static_cast<size_t>(this->rows_.count()) * sizeof(T) + 64;
  }

 private:
  void start(T* places) const override { std::fill_n(places, this->rows_.count(), this->outside_); }

  void run_plane(int64_t plane, const VendorBuffers& buffers, T* places) const override {
    const T* const x = static_cast<const T*>(buffers.first) + plane * this->image();
    T* const y = static_cast<T*>(buffers.result) + plane * this->pooled();
    this->rows_.each_block([&](int64_t, int64_t first, int64_t rows) {
      this->rows_.fill(x, 0, first, rows, this->outside_, places);
      this->ask(buffers, plane, first, rows);
      PoolRun<T> run = run_of(rows);
      run.x = places;
      run.y = y + first * this->w_.windows;
      is_maximum(this->kind_) ? this->kernels().max_forward(run) : this->kernels().mean_forward(run);
    });
  }

  /// Rows of windows as a kernel's windows, whose channels are those of a row.
  PoolRun<T> run_of(int64_t rows) const {
    PoolRun<T> run;
    run.channels = this->w_.windows;
    run.windows = rows;
    run.y_step = this->w_.windows;
    run.x_step = this->h_.stride * this->rows_.row();
    run.offsets = this->offsets_.data();
    run.taps = static_cast<int64_t>(this->offsets_.size());
    run.share = T(1) / static_cast<T>(run.taps);
    run.least = -std::numeric_limits<T>::infinity();
    return run;
  }
};

/// Windows of a block stand on a grid, with what they give and the tap that takes it; around them and behind the last
/// ones stand windows that give nothing. Elements then pull what is theirs: of each, one row of windows after the
/// other, in each from the last one to the first.
template <class T> class PlaneGradient final : public Planes<T> {
 public:
  explicit PlaneGradient(const PoolSpec& spec)
      : Planes<T>(spec, -std::numeric_limits<T>::infinity()), above_(shared(this->h_)), left_(shared(this->w_)) {
    const Windows &w = this->w_, &h = this->h_;
    const int64_t lanes = this->table_.vector_bytes / int64_t{sizeof(T)};
    grid_row_ = left_ + std::max(w.windows, (w.in + w.pad) / w.stride + 1) + lanes;
    grid_ = (2 * above_ + this->rows_.block()) * grid_row_ + lanes;
    grid_at_ = has_picks() ? this->rows_.count() + lanes : 0;
    this->scratch_bytes_ = static_cast<size_t>(grid_at_ + (has_picks() ? 2 : 1) * grid_) * sizeof(T) + 64;
    for (int64_t row = 0; row < h.stride; ++row) {
      for (int64_t column = 0; column < w.stride; ++column) taps_.push_back(taps_of(row, column));
    }
  }

 private:
  struct Taps {
    std::vector<int64_t> offsets;  // on the grid
    std::vector<T> numbers;
    operator typename PulledGradients<T>::Taps() const {
      return {offsets.data(), numbers.data(), static_cast<int64_t>(offsets.size())};
    }
  };

  /// How many windows before the last one that holds an element hold it too, at most.
  static int64_t shared(const Windows& windows) { return (windows.reach() - 1) / windows.stride; }
  bool has_picks() const { return is_maximum(this->kind_); }
  /// Of window `left_` of row `above_`, the first ones.
  T* grid(T* places) const { return places + grid_at_ + above_ * grid_row_ + left_; }
  T* picks(T* places) const { return has_picks() ? grid(places) + grid_ : nullptr; }

  /// The taps of places that stand `row` behind a window's first row of them, and of every element from `column` on.
  Taps taps_of(int64_t row, int64_t column) const {
    const Windows &w = this->w_, &h = this->h_;
    Taps taps;
    const int64_t place = column + w.pad;
    for (int64_t j = h.taps - 1; j >= 0; --j) {
      for (int64_t i = 0; i < w.taps; ++i) {
        const int64_t down = j * h.dilation - row, along = i * w.dilation - place % w.stride;
        if (down % h.stride != 0 || along % w.stride != 0) continue;
        taps.offsets.push_back(place / w.stride - along / w.stride - down / h.stride * grid_row_);
        taps.numbers.push_back(static_cast<T>(j * w.taps + i));
      }
    }
    return taps;
  }

  void start(T* places) const override {
    if (has_picks()) std::fill_n(places, grid_at_, this->outside_);
    clear(places, -above_, grid_ / grid_row_);
  }

  /// Rows of windows that give nothing.
  void clear(T* places, int64_t first, int64_t rows) const {
    std::fill_n(grid(places) - left_ + first * grid_row_, rows * grid_row_, T(0));
    if (has_picks()) std::fill_n(picks(places) - left_ + first * grid_row_, rows * grid_row_, T(-1));
  }

  void run_plane(int64_t plane, const VendorBuffers& buffers, T* places) const override {
    const Windows& h = this->h_;
    T* const dx = static_cast<T*>(buffers.result) + plane * this->image();
    const bool one_block = this->rows_.block() == h.windows;
    if (!one_block) clear(places, -above_, above_);
    this->rows_.each_block([&](int64_t, int64_t first, int64_t rows) {
      const bool last = first + rows == h.windows;
      give(plane, buffers, first, rows, places);
      if (last && !one_block) clear(places, rows, above_);
      for (int64_t row = 0; row < h.stride; ++row) pull(places, row, first, rows + (last ? above_ : 0), dx);
      if (last) return;
      keep(grid(places), rows);
      if (has_picks()) keep(picks(places), rows);
    });
    const int64_t held = std::clamp<int64_t>(h.places(h.windows) - h.pad, 0, h.in);
    std::fill(dx + held * this->w_.in, dx + this->image(), T(0));
  }

  /// Windows of rows [first, first + rows) on the grid.
  void give(int64_t plane, const VendorBuffers& buffers, int64_t first, int64_t rows, T* places) const {
    const int64_t at = plane * this->pooled() + first * this->w_.windows;
    GivenGradients<T> run;
    run.windows = this->w_.windows;
    run.rows = rows;
    run.grid = grid(places);
    run.picks = picks(places);
    run.grid_row = grid_row_;
    run.offsets = this->offsets_.data();
    run.taps = static_cast<int64_t>(this->offsets_.size());
    if (has_picks()) {
      this->rows_.fill(static_cast<const T*>(buffers.first) + plane * this->image(), 0, first, rows, this->outside_,
                       places);
      this->ask(buffers, plane, first, rows);
      run.x = places;
      run.x_row = this->h_.stride * this->rows_.row();
      run.y = static_cast<const T*>(buffers.second) + at;
      run.dy = static_cast<const T*>(buffers.third) + at;
    } else {
      run.dy = static_cast<const T*>(buffers.first) + at;
      run.share = T(1) / static_cast<T>(run.taps);
    }
    this->kernels().give_gradients(run);
  }

  /// Every `stride`th row of elements, those whose places stand `row` behind the first one of windows
  /// [first, first + rows), which no other windows pull.
  void pull(T* places, int64_t row, int64_t first, int64_t rows, T* dx) const {
    const Windows &w = this->w_, &h = this->h_;
    const int64_t begin = std::max(first, ceil_div(h.pad - row, h.stride));
    const int64_t end = std::min(first + rows, ceil_div(h.in + h.pad - row, h.stride));
    if (begin >= end) return;
    PulledGradients<T> run;
    run.grid = grid(places) + (begin - first) * grid_row_;
    run.picks = has_picks() ? run.grid + grid_ : nullptr;
    run.grid_row = grid_row_;
    run.step = w.stride;
    for (int64_t i = 0; i < w.stride; ++i) run.taps[i] = taps_[static_cast<size_t>(row * w.stride + i)];
    run.to = dx + (begin * h.stride + row - h.pad) * w.in;
    run.to_row = h.stride * w.in;
    run.rows = end - begin;
    run.count = w.in;
    this->kernels().pull_gradients(run);
  }

  /// What the next block's elements pull of this block's windows stands before it.
  void keep(T* first, int64_t rows) const {
    T* const row = first - left_;
    std::copy_n(row + (rows - above_) * grid_row_, above_ * grid_row_, row - above_ * grid_row_);
  }

  int64_t above_, left_;             // windows before the first ones that give nothing
  int64_t grid_row_ = 0, grid_ = 0;  // elements of a row of the grid, and of it
  int64_t grid_at_ = 0;              // in the scratch, behind the places of x
  std::vector<Taps> taps_;           // of each row and column of a stride
};

}  // namespace

/// Measured with AVX-512 against turning planes: forward, one window beside the other, it takes 0.5 to 1 of the time
/// from 24 windows on (Cascade Lake, Zen 5), but 1.2 to 2.4 at 20, which fill two vectors badly; two elements apart,
/// and for gradients, 0.7 to 0.97 from 32 on, and 1.1 to 1.5 at 24 and 28 (Zen 5).
bool plane_pool_pays(const PoolSpec& spec) {
  const int64_t least = is_forward(spec.kind) && spec.stride[0] == 1 ? 24 : 32;
  return spec.spatial <= 2 && spec.stride[0] <= 2 && spec.out[0] >= least;
}

template <class T> std::unique_ptr<VendorCall> prepare_plane_pool(const PoolSpec& spec, T least) {
  if (is_forward(spec.kind)) return std::make_unique<PlanePool<T>>(spec, least);
  return std::make_unique<PlaneGradient<T>>(spec);
}
template std::unique_ptr<VendorCall> prepare_plane_pool(const PoolSpec& spec, float least);
template std::unique_ptr<VendorCall> prepare_plane_pool(const PoolSpec& spec, double least);

}  // namespace rosin::engines
