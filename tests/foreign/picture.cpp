// Pictures of OpenCV as arrays; see ../foreign_headers_test.py.
#include <cstdint>
#include <cstdio>

#include <opencv2/core.hpp>

#include <rosin/image_memory.hpp>

int main() {
  cv::Mat picture(3, 4, CV_8UC2);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4; ++column) {
      picture.at<cv::Vec2b>(row, column) = {static_cast<uint8_t>(10 * row + column), 200};
    }
  }
  const cv::Mat part = picture(cv::Rect(1, 1, 2, 2));  // rows with gaps
  const rosin::Array whole = rosin::from_mat<uint8_t>(picture), cut = rosin::from_mat<uint8_t>(part);
  picture.at<cv::Vec2b>(0, 0) = {77, 88};
  const auto line = [](const rosin::Array& x) {
    std::printf("%d %d %d:", static_cast<int>(x.size(0)), static_cast<int>(x.size(1)), static_cast<int>(x.size(2)));
    std::printf(" %g %g %g %g\n", x.item(0, 0, 0), x.item(1, 0, 0), x.item(0, 1, 0), x.item(0, 0, 1));
  };
  line(whole);
  line(cut);
}
