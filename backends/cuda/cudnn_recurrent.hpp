// A recurrent layer as cuDNN computes it: what it is told of the layer, the room that it wants, and its calls. All that
// knows of a device here is the handle. Read first: recurrent.hpp, cudnn.hpp. Read next: recurrent_call.cpp.
#pragma once

#include <cstdint>

#include "cuda/cudnn.hpp"
#include "cuda/recurrent.hpp"

namespace rosin::cuda {

/// Addresses of a run; 0: that array is not there.
struct RecurrentArrays {
  driver::Address x = 0, weights = 0, h = 0, c = 0;  // before the first step
  driver::Address y = 0, last_h = 0, last_c = 0;     // results of the layer; of its gradient y alone
  driver::Address dy = 0, last_dh = 0, last_dc = 0;  // what the gradient starts from
  driver::Address dx = 0, dweights = 0, dh = 0, dc = 0;
  driver::Address reserve = 0, workspace = 0;
};

class DnnRecurrent {
 public:
  /// With the device's context current. Throws ROSIN_UNSUPPORTED where cuDNN does not compute it, or has its weights in
  /// another order than calls have.
  DnnRecurrent(Dnn& dnn, const Recurrent& layer);
  DnnRecurrent(const DnnRecurrent&) = delete;
  DnnRecurrent& operator=(const DnnRecurrent&) = delete;

  const Recurrent& layer() const { return layer_; }
  uint64_t reserve() const { return reserve_; }
  /// Of a run that keeps what the gradient needs, or of the gradient; and of one that does not.
  uint64_t workspace(bool keeps) const { return keeps ? training_room_ : inference_room_; }

  /// Where `reserve` is 0 nothing is kept for a gradient. x, weights, h, y and, of lstm, c must be there.
  void forward(driver::Stream stream, const RecurrentArrays& arrays) const;
  /// The reserve is spent. dy and dx must be there besides; dweights are added to.
  void backward(driver::Stream stream, const RecurrentArrays& arrays) const;

 private:
  /// An object of the library that goes when this does.
  template <class Handle> class Owned {
   public:
    ~Owned() {
      if (handle_) destroy_(handle_);
    }
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    void make(int (*create)(Handle*), int (*destroy)(Handle)) {
      dnn_library().check(create(&handle_), "a descriptor of a recurrent layer");
      destroy_ = destroy;
    }
    Handle get() const { return handle_; }

   private:
    Handle handle_ = nullptr;
    int (*destroy_)(Handle) = nullptr;
  };

  void describe(dnn::Handle handle);
  void check_weights(dnn::Handle handle) const;

  Dnn& dnn_;
  const Recurrent layer_;
  const dnn::RecurrentFunctions& call_;
  Owned<dnn::DropoutDescriptor> dropout_;
  Owned<dnn::RecurrentDescriptor> form_;
  Owned<dnn::SequenceDescriptor> x_form_, y_form_;
  Owned<dnn::TensorDescriptor> state_form_;
  uint64_t training_room_ = 0, inference_room_ = 0, reserve_ = 0;
};

}  // namespace rosin::cuda
