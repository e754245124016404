// Pictures of bytes as arrays. Row after row of a picture is column-major (columns, rows), so nothing is reordered.
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/idx.hpp>

namespace rosin {

ImageArrays image_arrays(const LabelledImages& pictures) {
  const int64_t pixels = pictures.count * pictures.rows * pictures.columns;
  if (pictures.pixels.size() != static_cast<size_t>(pixels) ||
      pictures.labels.size() != static_cast<size_t>(pictures.count)) {
    throw Error(ErrorKind::argument, "image_arrays: pixels and labels must fit the count of images; got " +
                                         std::to_string(pictures.pixels.size()) + " pixels and " +
                                         std::to_string(pictures.labels.size()) + " labels for " +
                                         std::to_string(pictures.count) + " images of " +
                                         std::to_string(pictures.rows) + "x" + std::to_string(pictures.columns));
  }
  std::vector<float> values = detail::host_vector<float>("image_arrays", static_cast<int64_t>(pictures.pixels.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(pictures.pixels[i]) / 255.0f;
  const std::vector<int32_t> labels(pictures.labels.begin(), pictures.labels.end());
  return {Array(values, {pictures.columns, pictures.rows, 1, pictures.count}), Array(labels, {pictures.count})};
}

}  // namespace rosin
