// See conv_rows.hpp.
#include "engines/conv_rows.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <rosin/dtype.hpp>

#include "engines/conv_cuts.hpp"

namespace rosin::engines {
namespace {

/// Each chunk is a piece; all read the weights that the first call has packed.
class ConvRows final : public VendorCall {
 public:
  ConvRows(const ConvSpec& spec, const ConvCuts& cuts, const MakeConv& make)
      : element_bytes_(static_cast<int64_t>(size_of(spec.type))) {
    chunks_ = cuts.chunks();
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) add(cuts.piece(chunk), make);
    const VendorCall& first = *calls_.front().call;
    workspace_bytes_ = first.workspace_bytes();
    has_begin_ = first.has_begin();
    may_fail_ = first.may_fail();
  }

  const char* engine() const noexcept override { return calls_.front().call->engine(); }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this) + pieces_.capacity() * sizeof(Piece);
    for (const Made& made : calls_) bytes += made.call->bytes();
    return bytes;
  }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return pieces_[static_cast<size_t>(chunk)].part; }

  void begin(const VendorBuffers& buffers) const override { calls_.front().call->begin(buffers); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const Piece& piece = pieces_[static_cast<size_t>(chunk)];
    const VendorCall& call = *calls_[piece.made].call;
    VendorBuffers own = buffers;
    own.first = static_cast<const char*>(buffers.first) + piece.x * element_bytes_;
    own.result = static_cast<char*>(buffers.result) + piece.y * element_bytes_;
    for (int64_t part = 0; part < call.chunks(); ++part) call.run_chunk(part, own, scratch);
  }

 private:
  struct Piece {
    size_t made;
    int64_t x, y;  // elements
    MatmulPart part;
  };
  /// For pieces of one size.
  struct Made {
    ConvSpec spec;
    std::unique_ptr<VendorCall> call;
  };

  void add(const ConvPiece& piece, const MakeConv& make) {
    const auto as_large = [&](const Made& made) { return is_same_piece(made.spec, piece.spec); };
    const auto found = std::find_if(calls_.begin(), calls_.end(), as_large);
    pieces_.push_back({static_cast<size_t>(found - calls_.begin()), piece.x, piece.y, piece.part});
    if (found != calls_.end()) return;
    calls_.push_back({piece.spec, make(piece.spec)});
    scratch_bytes_ = std::max(scratch_bytes_, calls_.back().call->scratch_bytes_per_chunk());
  }

  int64_t element_bytes_;
  std::vector<Piece> pieces_;  // by chunk
  std::vector<Made> calls_;
};

}  // namespace

std::unique_ptr<VendorCall> by_rows(const ConvSpec& spec, const MakeConv& make) {
  if (spec.kind != ConvKind::forward || spec.spatial < 2) return make(spec);
  const ConvCuts cuts(spec, 1);
  if (!cuts.cuts_rows()) return make(spec);
  return std::make_unique<ConvRows>(spec, cuts, make);
}

}  // namespace rosin::engines
