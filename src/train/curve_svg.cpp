// Writes the picture line by line: axes with round ticks, grid, curves, legend. Read next: readable_number.hpp.
#include <rosin/curve_svg.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/file.hpp"
#include "train/readable_number.hpp"

namespace rosin {

namespace {

// The picture and, in it, the rectangle of the curves, in SVG units.
constexpr int picture_width = 720;
constexpr int picture_height = 420;
constexpr double left = 72;
constexpr double right = 648;
constexpr double top = 64;
constexpr double bottom = 356;

constexpr std::size_t most_dots = 60;  // with more points than this the curve alone is clearer

constexpr const char* style = R"(<style>
  svg { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
  .paper { fill: #ffffff; } .ink { fill: #1f2933; } .axis { stroke: #7b8794; } .grid { stroke: #e4e7eb; }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .loss { stroke: #2563eb; } .accuracy { stroke: #c2410c; stroke-dasharray: 7 4; }
  .loss-ink { fill: #2563eb; } .accuracy-ink { fill: #c2410c; } .title { font-size: 16px; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #14181d; } .ink { fill: #e4e7eb; } .axis { stroke: #9aa5b1; } .grid { stroke: #2d3742; }
    .loss { stroke: #7aa7ff; } .accuracy { stroke: #ff9e64; }
    .loss-ink { fill: #7aa7ff; } .accuracy-ink { fill: #ff9e64; }
  }
</style>
)";

// Beyond this a difference of two values may overflow; no loss of a run worth a picture is there.
bool can_be_drawn(double value) { return std::abs(value) < 1e100; }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return low > high; }
  void include(double value) {
    if (!can_be_drawn(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Ticks at round numbers: multiples `first` to `last` of a step that is 1, 2 or 5 times a power of ten.
struct Axis {
  double step = 1;
  int64_t first = 0;
  int64_t last = 1;

  double tick(int64_t k) const { return static_cast<double>(k) * step; }
  double low() const { return tick(first); }
  double high() const { return tick(last); }
  double share(double value) const { return (value - low()) / (high() - low()); }
};

double round_step(double smallest) {
  const double power = std::pow(10.0, std::floor(std::log10(smallest)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= smallest * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis axis_of(Range range, double smallest_step) {
  constexpr double steps = 6;
  if (range.empty()) range = {0, 1};
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  const double least = std::max(1e-6 * size, 1e-90);  // equal values need an axis with some length too
  if (range.high - range.low < least) range = {range.low - 0.05 * size - least, range.high + 0.05 * size + least};
  Axis axis;
  axis.step = std::max(round_step((range.high - range.low) / steps), smallest_step);
  axis.first = std::llround(std::floor(range.low / axis.step + 1e-9));
  axis.last = std::max<int64_t>(std::llround(std::ceil(range.high / axis.step - 1e-9)), axis.first + 1);
  return axis;
}

std::string tick_text(const Axis& axis, double value) {
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(axis.step) + 1e-9)));
  const bool plain = digits <= 5 && std::max(std::abs(axis.low()), std::abs(axis.high())) < 1e6;
  return plain ? fixed_text(value, digits) : loss_text(value);
}

std::string number(double value) { return fixed_text(value, 1); }

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

std::string text_at(double x, double y, const char* look, const char* anchor, const std::string& text) {
  return "<text class=\"" + std::string(look) + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" +
         anchor + "\">" + escaped(text) + "</text>\n";
}

std::string line_between(double x1, double y1, double x2, double y2, const char* look) {
  return "<line class=\"" + std::string(look) + "\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" +
         number(x2) + "\" y2=\"" + number(y2) + "\"/>\n";
}

double x_of(const Axis& axis, double value) { return left + axis.share(value) * (right - left); }
double y_of(const Axis& axis, double value) { return bottom - axis.share(value) * (bottom - top); }

std::string ticks_below(const Axis& axis) {
  std::string svg;
  for (int64_t k = axis.first; k <= axis.last; ++k) {
    const double x = x_of(axis, axis.tick(k));
    svg += line_between(x, bottom, x, bottom + 5, "axis") +
           text_at(x, bottom + 20, "ink", "middle", tick_text(axis, axis.tick(k)));
  }
  return svg + line_between(left, bottom, right, bottom, "axis") +
         text_at((left + right) / 2, bottom + 44, "ink", "middle", "epoch");
}

std::string ticks_beside(const Axis& axis, bool on_the_left, const char* look) {
  const double x = on_the_left ? left : right;
  const double outward = on_the_left ? -1 : 1;
  std::string svg;
  for (int64_t k = axis.first; k <= axis.last; ++k) {
    const double y = y_of(axis, axis.tick(k));
    if (on_the_left) svg += line_between(left, y, right, y, "grid");
    svg += line_between(x, y, x + 5 * outward, y, "axis") +
           text_at(x + 9 * outward, y + 4.5, look, on_the_left ? "end" : "start", tick_text(axis, axis.tick(k)));
  }
  return svg + line_between(x, top, x, bottom, "axis");
}

std::string dot(const std::string& name, const std::string& x, const std::string& y) {
  return "<circle class=\"" + name + "-ink\" cx=\"" + x + "\" cy=\"" + y + "\" r=\"3\"/>\n";
}

using Value = double CurvePoint::*;

// One polyline for every stretch without a gap, and dots, which also show a point between two gaps.
std::string curve(std::span<const CurvePoint> points, Value value, const Axis& across, const Axis& up,
                  const std::string& name) {
  std::string lines;
  std::string dots;
  std::string stretch;
  std::size_t length = 0;
  const auto end_stretch = [&] {
    if (length > 1) lines += "<polyline class=\"line " + name + "\" points=\"" + stretch + "\"/>\n";
    stretch.clear();
    length = 0;
  };
  for (std::size_t k = 0; k < points.size(); ++k) {
    const CurvePoint& point = points[k];
    const auto is_gap = [value](const CurvePoint& p) { return !can_be_drawn(p.*value) || !can_be_drawn(p.epoch); };
    if (is_gap(point)) {
      end_stretch();
      continue;
    }
    const std::string x = number(x_of(across, point.epoch));
    const std::string y = number(y_of(up, point.*value));
    const bool alone = length == 0 && (k + 1 == points.size() || is_gap(points[k + 1]));
    stretch.append(length++ == 0 ? "" : " ").append(x).append(",").append(y);
    if (alone || points.size() <= most_dots) {
      dots.append(dot(name, x, y));
    }
  }
  end_stretch();
  return lines + dots;
}

std::string legend_entry(double x, const char* name) {
  const std::string ink = std::string(name) + "-ink";
  const std::string line = std::string("line ") + name;
  return line_between(x, 45, x + 28, 45, line.c_str()) + text_at(x + 34, 49.5, ink.c_str(), "start", name);
}

std::string head(const std::string& title) {
  const std::string size = std::to_string(picture_width) + "\" height=\"" + std::to_string(picture_height) + "\"";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"" + size + " viewBox=\"0 0 " +
         std::to_string(picture_width) + " " + std::to_string(picture_height) + "\">\n<title>" + escaped(title) +
         "</title>\n" + style + "<rect class=\"paper\" width=\"" + size + "/>\n" +
         text_at(left, 28, "ink title", "start", title);
}

}  // namespace

std::string curve_svg(const std::vector<CurvePoint>& points, const std::string& title) {
  Range epochs;
  Range losses;
  Range accuracies;
  for (const CurvePoint& point : points) {
    epochs.include(point.epoch);
    losses.include(point.loss);
    accuracies.include(point.accuracy);
  }
  if (!losses.empty()) losses.include(0);  // a loss is read against 0
  const Axis across = axis_of(epochs, 1);
  const Axis loss = axis_of(losses, 0);
  const Axis accuracy = axis_of(accuracies, 0);
  return head(title.empty() ? "Training" : title) + ticks_beside(loss, true, "loss-ink") +
         ticks_beside(accuracy, false, "accuracy-ink") + ticks_below(across) + legend_entry(left, "loss") +
         legend_entry(left + 90, "accuracy") + curve(points, &CurvePoint::loss, across, loss, "loss") +
         curve(points, &CurvePoint::accuracy, across, accuracy, "accuracy") + "</svg>\n";
}

void save_curve_svg(const std::string& path, const std::vector<CurvePoint>& points, const std::string& title) {
  write_file_atomically(path, curve_svg(points, title));
}

}  // namespace rosin
