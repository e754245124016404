// Tests of the training picture: that it is one well-formed file, that the curves stand where the numbers are, and that
// no value can break it.
#include <rosin/curve_svg.hpp>

#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rosin/error.hpp>

namespace rosin {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Every element that opens closes, in order, and no stray < or & stands in a text.
bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < svg.size(); ++at) {
    if (svg[at] == '&' && svg.find(';', at) > at + 5) return false;
    if (svg[at] != '<') continue;
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos || svg.find('<', at + 1) < end) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(CurveSvg, TheCurvesStandWhereTheNumbersAre) {
  // Loss axis 0 to 2, accuracy axis 0.5 to 1, epochs 0 to 4; the plot spans x 72 to 648 and y 356 (low) to 64 (high).
  const std::string svg = curve_svg({{0, 2, 0.5}, {1, 1, 0.75}, {4, 0.5, 1}});
  EXPECT_TRUE(contains(svg, "<polyline class=\"line loss\" points=\"72.0,64.0 216.0,210.0 648.0,283.0\"/>"));
  EXPECT_TRUE(contains(svg, "<polyline class=\"line accuracy\" points=\"72.0,356.0 216.0,210.0 648.0,64.0\"/>"));
  EXPECT_EQ(count_of(svg, "<circle"), 6U);
}

TEST(CurveSvg, AxesHaveRoundTicks) {
  const std::string svg = curve_svg({{1, 0.63, 0.783}, {10, 0.12, 0.901}});
  for (const char* tick : {"0.0", "0.2", "0.8", "0.78", "0.80", "0.92", "0", "2", "10"}) {
    EXPECT_TRUE(contains(svg, ">" + std::string(tick) + "</text>")) << tick;
  }
  EXPECT_FALSE(contains(svg, ">1.0</text>"));
  for (const char* word : {"epoch", "loss", "accuracy"}) {
    EXPECT_EQ(count_of(svg, ">" + std::string(word) + "</text>"), 1U) << word;
  }
}

TEST(CurveSvg, ItIsOneSelfContainedImageForLightAndDark) {
  const std::string svg = curve_svg({{1, 0.6, 0.7}, {2, 0.5, 0.8}}, "a run");
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\""), 0U);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_TRUE(contains(svg, "prefers-color-scheme: dark"));
  EXPECT_EQ(count_of(svg, "http"), 1U);  // the name space; nothing is fetched
  EXPECT_FALSE(contains(svg, "href"));
}

TEST(CurveSvg, TheTitleCannotBreakOut) {
  const std::string svg = curve_svg({}, "a<b & \"c\"\n>");
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_TRUE(contains(svg, "<title>a&lt;b &amp; &quot;c&quot; &gt;</title>"));
}

TEST(CurveSvg, AMissingValueIsAGap) {
  const std::string svg = curve_svg(
      {{1, 1, no_number}, {2, 1, no_number}, {3, no_number, no_number}, {4, 1, no_number}, {5, infinity, no_number}});
  EXPECT_EQ(count_of(svg, "<polyline class=\"line loss\""), 1U);
  EXPECT_EQ(count_of(svg, "<circle class=\"loss-ink\""), 3U);
  EXPECT_EQ(count_of(svg, "<polyline class=\"line accuracy\""), 0U);
  EXPECT_FALSE(contains(svg, "nan"));
  EXPECT_FALSE(contains(svg, "inf"));
}

TEST(CurveSvg, InALongRunOnlyLonelyPointsAreDots) {
  std::vector<CurvePoint> points;
  points.reserve(500);
  for (int epoch = 0; epoch < 500; ++epoch) points.push_back({static_cast<double>(epoch), 1, 0.5});
  points[100].loss = no_number;
  points[102].loss = no_number;
  const std::string svg = curve_svg(points);
  EXPECT_EQ(count_of(svg, "<circle"), 1U);
  EXPECT_EQ(count_of(svg, "<polyline class=\"line loss\""), 2U);
}

TEST(CurveSvg, NoValueBreaksThePicture) {
  const double extremes[] = {0,     -1,        1e-300, 1e-95, -1e-20, 1e15,      1e99,     -1e99,
                             1e300, no_number, 5e-324, 1,     -0.0,   -infinity, 1 + 1e-15};
  for (const double a : extremes) {
    for (const double b : extremes) {
      const std::string svg = curve_svg({{a, b, a}, {b, a, b}, {1, 1, 1}});
      ASSERT_TRUE(is_well_formed(svg)) << a << " " << b;
      ASSERT_FALSE(contains(svg, "\"nan") || contains(svg, ",nan") || contains(svg, "inf")) << a << " " << b;
      ASSERT_LT(count_of(svg, "<line"), 60U) << a << " " << b;
    }
  }
}

TEST(CurveSvg, TheFileHoldsThePictureOrAnErrorSaysWhyNot) {
  const std::vector<CurvePoint> points = {{1, 0.6, 0.7}, {2, 0.5, 0.8}};
  const std::string path = ::testing::TempDir() + "curve-" + std::to_string(getpid()) + ".svg";
  save_curve_svg(path, points, "run");
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), curve_svg(points, "run"));
  std::remove(path.c_str());
  EXPECT_THROW(save_curve_svg(path + "/no/folder.svg", points), Error);
}

TEST(CurveSvg, ALocaleWithCommasChangesNothing) {
  const std::vector<CurvePoint> points = {{1, 0.6, 0.7}, {2, 0.5, 0.8}};
  const std::string before = curve_svg(points);
  const std::string old = std::setlocale(LC_ALL, nullptr);
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "the locale de_DE.UTF-8 is not installed";
  const std::string after = curve_svg(points);
  std::setlocale(LC_ALL, old.c_str());
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace rosin
