// Rows of the table of ops: images at other sizes and places, and their windows. Read first: op_table.hpp.
#include <map>
#include <sstream>

#include <rosin/resample.hpp>

#include "op_table.hpp"

namespace rosin::suite {
namespace {

std::vector<double> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> values;
  for (std::string part; std::getline(in, part, ',');) values.push_back(std::stod(part));
  return values;
}

Interpolation mode_of(const OracleCase& e) {
  static const std::map<std::string, Interpolation> modes = {{"nearest", Interpolation::nearest},
                                                             {"linear", Interpolation::linear},
                                                             {"bilinear", Interpolation::linear},
                                                             {"cubic", Interpolation::cubic},
                                                             {"area", Interpolation::area}};
  return modes.at(e.attributes.at("mode"));
}

Arrays interpolated(const OracleCase& e, const Arrays& x) {
  InterpolateOptions options{
      .mode = mode_of(e), .align_corners = is_set(e, "align"), .antialias = is_set(e, "antialias")};
  if (e.has("size")) options.size = extents_of(e, "size");
  else options.scale = numbers(e.attributes.at("scale"));
  return {interpolate(x[0], options)};
}

UnfoldOptions unfolding(const OracleCase& e) {
  return {extents_of(e, "stride"), extents_of(e, "pad"), extents_of(e, "dilation")};
}

Arrays unfolded(const OracleCase& e, const Arrays& x) { return {unfold(x[0], extents_of(e, "window"), unfolding(e))}; }

Arrays folded(const OracleCase& e, const Arrays& x) {
  return {fold(x[0], extents_of(e, "size"), extents_of(e, "window"), unfolding(e))};
}

Arrays affine(const OracleCase& e, const Arrays& x) {
  return {affine_grid(x[0], extents_of(e, "size"), is_set(e, "align"))};
}

Arrays sampled(const OracleCase& e, const Arrays& x) {
  const std::string& border = e.attributes.at("border");
  const GridSampleOptions options{.mode = mode_of(e),
                                  .border = border == "zeros"    ? GridBorder::zeros
                                            : border == "border" ? GridBorder::border
                                                                 : GridBorder::reflection,
                                  .align_corners = is_set(e, "align")};
  return {grid_sample(x[0], x[1], options)};
}

}  // namespace

std::vector<OpEntry> resample_entries() {
  return {{"interpolate", "interpolate", interpolated},
          {"unfold", "unfold", unfolded},
          {"fold", "fold", folded},
          {"affine_grid", "affine_grid", affine},
          {"grid_sample", "grid_sample", sampled}};
}

}  // namespace rosin::suite
