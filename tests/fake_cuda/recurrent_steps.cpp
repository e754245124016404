// See recurrent_steps.hpp. All in doubles; weights are rows of the input's product, of the state's, then biases.
#include "recurrent_steps.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fake_dnn {
namespace {

using Numbers = std::vector<double>;

Numbers read(const RecurrentForm& form, uint64_t address, int64_t count) {
  Numbers all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count && address; ++i) {
    all[static_cast<size_t>(i)] = fake::read_element(element_of(form.type), address, i);
  }
  return all;
}

void write(const RecurrentForm& form, uint64_t address, const Numbers& values) {
  for (size_t i = 0; i < values.size() && address; ++i) {
    fake::write_element(element_of(form.type), address, static_cast<int64_t>(i), values[i]);
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One step of one sequence: sums by gate and row of the input's product with its bias (s) and the state's (u).
struct Step {
  Numbers s, u, h, c, last_h, last_c;  // h, c: before it
};

class Layer {
 public:
  Layer(const RecurrentForm& form, const RecurrentPlaces& at)
      : f(form), x(read(form, at.x, inputs(f))), weights(read(form, at.weights, f.parameters())),
        h(read(form, at.h, states(f))), c(read(form, at.c, states(f))) {}
  /// What another one kept.
  Layer(const RecurrentForm& form, const double* kept)
      : f(form), x(kept, kept + inputs(f)), weights(kept + inputs(f), kept + inputs(f) + f.parameters()),
        h(kept + inputs(f) + f.parameters(), kept + inputs(f) + f.parameters() + states(f)),
        c(kept + inputs(f) + f.parameters() + states(f), kept + kept_numbers(f)) {}

  void keep(double* kept) const {
    for (const Numbers* all : {&x, &weights, &h, &c}) kept = std::copy(all->begin(), all->end(), kept);
  }

  /// Of sequence b, in order.
  std::vector<Step> run(int64_t b) const {
    std::vector<Step> all;
    Numbers state(h.begin() + b * f.out, h.begin() + (b + 1) * f.out);
    Numbers cell(c.begin() + b * f.out, c.begin() + (b + 1) * f.out);
    for (int64_t t = 0; t < f.steps; ++t) {
      Step step{Numbers(rows()), Numbers(rows()), state, cell, Numbers(state.size()), cell};
      for (size_t r = 0; r < rows(); ++r) {
        step.s[r] = weights[bias(r)];
        for (size_t k = 0; k < features(); ++k) step.s[r] += weights[of_input(r, k)] * x[input(b, t, k)];
        for (size_t k = 0; k < out(); ++k) step.u[r] += weights[of_state(r, k)] * step.h[k];
      }
      for (size_t i = 0; i < out(); ++i) finish(step, i);
      state = step.last_h;
      cell = step.last_c;
      all.push_back(std::move(step));
    }
    return all;
  }

  /// Slopes by s and u of a step, from those by its state and cell, which become those by what was before it.
  void back(const Step& step, size_t i, double& dh, double& dc, Numbers& ds, Numbers& du) const {
    const auto sum = [&](size_t gate) { return step.s[gate * out() + i] + step.u[gate * out() + i]; };
    const auto put = [&](size_t gate, double slope) { ds[gate * out() + i] = du[gate * out() + i] = slope; };
    const auto curved = [](double y) { return y * (1 - y); };
    switch (f.cell) {
      case dnn::RecurrentCell::relu: put(0, sum(0) > 0 ? dh : 0); break;
      case dnn::RecurrentCell::tanh: put(0, dh * (1 - std::pow(std::tanh(sum(0)), 2))); break;
      case dnn::RecurrentCell::lstm: {
        const double in = sigmoid(sum(0)), kept = sigmoid(sum(1)), g = std::tanh(sum(2)), o = sigmoid(sum(3));
        const double shown = std::tanh(step.last_c[i]);
        put(3, dh * shown * curved(o));
        dc += dh * o * (1 - shown * shown);
        put(0, dc * g * curved(in));
        put(1, dc * step.c[i] * curved(kept));
        put(2, dc * in * (1 - g * g));
        dc *= kept;
        break;
      }
      case dnn::RecurrentCell::gru: {
        const double r = sigmoid(sum(0)), z = sigmoid(sum(1)), u = step.u[2 * out() + i];
        const double n = std::tanh(step.s[2 * out() + i] + r * u), dn = dh * (1 - z) * (1 - n * n);
        put(0, dn * u * curved(r));
        put(1, dh * (step.h[i] - n) * curved(z));
        ds[2 * out() + i] = dn;
        du[2 * out() + i] = dn * r;
        dh *= z;
        return;
      }
    }
    dh = 0;
  }

  const RecurrentForm f;
  const Numbers x, weights, h, c;

  static int64_t inputs(const RecurrentForm& form) { return form.features * form.steps * form.batch; }
  static int64_t states(const RecurrentForm& form) { return form.out * form.batch; }
  size_t features() const { return static_cast<size_t>(f.features); }
  size_t out() const { return static_cast<size_t>(f.out); }
  size_t rows() const { return static_cast<size_t>(f.gates() * f.out); }
  size_t of_input(size_t row, size_t k) const { return row * features() + k; }
  size_t of_state(size_t row, size_t k) const { return rows() * features() + row * out() + k; }
  size_t bias(size_t row) const { return rows() * (features() + out()) + row; }
  size_t input(int64_t b, int64_t t, size_t k) const { return static_cast<size_t>(b * f.steps + t) * features() + k; }
  size_t output(int64_t b, int64_t t, size_t k) const { return static_cast<size_t>(b * f.steps + t) * out() + k; }

 private:
  void finish(Step& step, size_t i) const {
    const auto sum = [&](size_t gate) { return step.s[gate * out() + i] + step.u[gate * out() + i]; };
    double& made = step.last_h[i];
    switch (f.cell) {
      case dnn::RecurrentCell::relu: made = sum(0) > 0 ? sum(0) : 0; break;
      case dnn::RecurrentCell::tanh: made = std::tanh(sum(0)); break;
      case dnn::RecurrentCell::lstm:
        step.last_c[i] = sigmoid(sum(1)) * step.c[i] + sigmoid(sum(0)) * std::tanh(sum(2));
        made = sigmoid(sum(3)) * std::tanh(step.last_c[i]);
        break;
      case dnn::RecurrentCell::gru: {
        const double n = std::tanh(step.s[2 * out() + i] + sigmoid(sum(0)) * step.u[2 * out() + i]);
        made = n + sigmoid(sum(1)) * (step.h[i] - n);
      }
    }
  }
};

struct Slopes {
  Numbers dx, dh, dc, dweights;
};

Slopes slopes_of(const RecurrentForm& form, const RecurrentPlaces& at, const double* kept) {
  const Layer layer(form, kept);
  const Numbers dy = read(form, at.dy, form.out * form.steps * form.batch);
  Slopes made{Numbers(layer.x.size()), read(form, at.last_dh, form.out * form.batch),
              read(form, at.last_dc, form.out * form.batch), Numbers(layer.weights.size())};
  for (int64_t b = 0; b < form.batch; ++b) {
    const std::vector<Step> steps = layer.run(b);
    double *dh = &made.dh[static_cast<size_t>(b * form.out)], *dc = &made.dc[static_cast<size_t>(b * form.out)];
    for (int64_t t = form.steps - 1; t >= 0; --t) {
      const Step& step = steps[static_cast<size_t>(t)];
      Numbers ds(layer.rows()), du(layer.rows());
      for (size_t i = 0; i < layer.out(); ++i) {
        dh[i] += dy[layer.output(b, t, i)];
        layer.back(step, i, dh[i], dc[i], ds, du);
      }
      for (size_t r = 0; r < layer.rows(); ++r) {
        made.dweights[layer.bias(r)] += ds[r];
        for (size_t k = 0; k < layer.features(); ++k) {
          made.dx[layer.input(b, t, k)] += layer.weights[layer.of_input(r, k)] * ds[r];
          made.dweights[layer.of_input(r, k)] += layer.x[layer.input(b, t, k)] * ds[r];
        }
        for (size_t k = 0; k < layer.out(); ++k) {
          dh[k] += layer.weights[layer.of_state(r, k)] * du[r];
          made.dweights[layer.of_state(r, k)] += step.h[k] * du[r];
        }
      }
    }
  }
  return made;
}

}  // namespace

int64_t kept_numbers(const RecurrentForm& form) {
  return Layer::inputs(form) + form.parameters() + 2 * Layer::states(form);
}

void compute_layer(const RecurrentForm& form, const RecurrentPlaces& at, double* kept) {
  const Layer layer(form, at);
  if (kept) layer.keep(kept);
  Numbers y(static_cast<size_t>(form.out * form.steps * form.batch)), last_h(layer.h.size()), last_c(layer.c.size());
  for (int64_t b = 0; b < form.batch; ++b) {
    const std::vector<Step> steps = layer.run(b);
    for (size_t i = 0; i < layer.out(); ++i) {
      for (int64_t t = 0; t < form.steps; ++t) y[layer.output(b, t, i)] = steps[static_cast<size_t>(t)].last_h[i];
      last_h[static_cast<size_t>(b * form.out) + i] = steps.back().last_h[i];
      last_c[static_cast<size_t>(b * form.out) + i] = steps.back().last_c[i];
    }
  }
  write(form, at.y, y);
  write(form, at.last_h, last_h);
  write(form, at.last_c, last_c);
}

void compute_data_gradient(const RecurrentForm& form, const RecurrentPlaces& at, double* kept) {
  const Slopes made = slopes_of(form, at, kept);
  write(form, at.dx, made.dx);
  write(form, at.dh, made.dh);
  write(form, at.dc, made.dc);
  std::copy(made.dweights.begin(), made.dweights.end(), kept);
}

void add_weight_gradient(const RecurrentForm& form, uint64_t dweights, const double* kept) {
  Numbers sum = read(form, dweights, form.parameters());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += kept[i];
  write(form, dweights, sum);
}

}  // namespace fake_dnn
