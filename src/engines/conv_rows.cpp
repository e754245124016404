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
      : element_bytes_(static_cast<int64_t>(size_of(spec.type))), pieces_(cuts) {
    chunks_ = cuts.chunks();
    for (const ConvSpec& size : pieces_.sizes) {
      calls_.push_back(make(size));
      scratch_bytes_ = std::max(scratch_bytes_, calls_.back()->scratch_bytes_per_chunk());
    }
    const VendorCall& first = *calls_.front();
    workspace_bytes_ = first.workspace_bytes();
    has_begin_ = first.has_begin();
    may_fail_ = first.may_fail();
  }

  const char* engine() const noexcept override { return calls_.front()->engine(); }
  size_t bytes() const noexcept override {
    size_t bytes = sizeof(*this) + pieces_.pieces.capacity() * sizeof(ConvPieces::Piece);
    for (const auto& call : calls_) bytes += call->bytes() + sizeof(ConvSpec);
    return bytes;
  }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return pieces_[chunk].part; }

  void begin(const VendorBuffers& buffers) const override { calls_.front()->begin(buffers); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const ConvPieces::Piece& piece = pieces_[chunk];
    const VendorCall& call = *calls_[piece.size];
    VendorBuffers own = buffers;
    own.first = static_cast<const char*>(buffers.first) + piece.x * element_bytes_;
    own.result = static_cast<char*>(buffers.result) + piece.y * element_bytes_;
    for (int64_t part = 0; part < call.chunks(); ++part) call.run_chunk(part, own, scratch);
  }

 private:
  int64_t element_bytes_;
  ConvPieces pieces_;
  std::vector<std::unique_ptr<VendorCall>> calls_;  // by size
};

}  // namespace

std::unique_ptr<VendorCall> by_rows(const ConvSpec& spec, const MakeConv& make) {
  if (spec.kind != ConvKind::forward || spec.spatial < 2) return make(spec);
  const ConvCuts cuts(spec, 1);
  if (!cuts.cuts_rows()) return make(spec);
  return std::make_unique<ConvRows>(spec, cuts, make);
}

}  // namespace rosin::engines
