/* backend_calls.h: how rosin describes what a vendor's library shall compute. A part of backend.h, which includes it.
 */
#ifndef ROSIN_BACKEND_CALLS_H
#define ROSIN_BACKEND_CALLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Vendor calls --------------------------------------------------------------------------------------------------
 *
 * What a vendor's library computes as one call. rosin asks for it twice: when a plan is made, before sizes are known
 * (call_takes), and when the plan is prepared for sizes (call_prepare). A step whose call is refused is computed by
 * rosin's kernels, that step alone. Today rosin asks for matmul, convolutions, poolings, attention and recurrent
 * layers. Lists grow at their ends: a plug-in refuses (ROSIN_UNSUPPORTED) kinds, types, roles, activations, modes and
 * attributes that it does not know, and flags that it does not serve. So there is room for other types of elements and
 * the roles of their scales.
 *
 * matmul     a dim of size 1 in the batch of an operand repeats; batches have up to six dims.
 * normalisation  over all dims in which `mean` has one element: input - mean, times deviation, [times weights, plus
 *            bias]. deviation is 1 / sqrt(variance + epsilon), mean and deviation are stored where they are arrays.
 * attention  query (features, queries, heads, batch), key and value (features, keys, heads, batch) -> output like
 *            query with value's features, where each head of keys may serve several of queries, in order: softmax
 *            over the keys of scale * key' * query, [dropout,] times value. state (queries, heads, batch) in Float32
 *            receives the logarithm of the sum of the exponentials; where no gradient needs it, it is not among the
 *            arrays.
 * recurrent  a layer of the cell that ROSIN_ATTRIBUTE_CELL names, from the first step to the last, over an input
 *            (features, steps, batch); outputs are (out, steps, batch), the states before the first and behind the
 *            last step (out, batch). `weights` are one row: (features, gates * out) of the input, (out, gates * out)
 *            of the state, (gates * out) biases, each column-major, the gates in the order of rosin_cell. reserve has
 *            call_reserve bytes and keeps what the gradient needs of this run; the gradient leaves it as it is.
 *            Results that are not among the arrays are not wanted. */

typedef enum rosin_call_kind {
  ROSIN_CALL_MATMUL,              /* left (m, k, batch...), right (k, n, batch...) -> output (m, n, batch...) */
  ROSIN_CALL_CONVOLUTION,         /* input, weights -> output */
  ROSIN_CALL_CONVOLUTION_DATA,    /* output_gradient, weights -> input_gradient */
  ROSIN_CALL_CONVOLUTION_WEIGHTS, /* input, output_gradient -> weights_gradient */
  ROSIN_CALL_POOLING,             /* input -> output */
  ROSIN_CALL_POOLING_DATA,        /* [of the maximum: input, output,] output_gradient -> input_gradient */
  ROSIN_CALL_NORMALISATION,       /* input, [weights, bias,] -> [mean, deviation,] output. Not asked for yet */
  ROSIN_CALL_NORMALISATION_DATA,  /* input, [weights,] mean, deviation, output_gradient ->
                                     [weights_gradient, bias_gradient,] input_gradient */
  ROSIN_CALL_ATTENTION,           /* query, key, value -> output, [state] */
  ROSIN_CALL_ATTENTION_DATA,      /* query, key, value, output, state, output_gradient ->
                                     query_gradient, key_gradient, value_gradient */
  ROSIN_CALL_RECURRENT,           /* input, weights, first_state, [first_cell] ->
                                     [output, last_state, last_cell, reserve] */
  ROSIN_CALL_RECURRENT_DATA,      /* input, weights, first_state, [first_cell,] output, reserve,
                                     [output_gradient, last_state_gradient, last_cell_gradient] -> [input_gradient,
                                     weights_gradient, first_state_gradient, first_cell_gradient] */
  ROSIN_CALL_OPTIMISER,
  ROSIN_CALL_COLLECTIVE
} rosin_call_kind;

/* What an array is to its call. Images are (spatial..., channels, batch), weights (spatial..., in / groups, out). */
typedef enum rosin_role {
  ROSIN_ROLE_LEFT,
  ROSIN_ROLE_RIGHT,
  ROSIN_ROLE_INPUT,
  ROSIN_ROLE_WEIGHTS,
  ROSIN_ROLE_OUTPUT,
  ROSIN_ROLE_INPUT_GRADIENT,
  ROSIN_ROLE_WEIGHTS_GRADIENT,
  ROSIN_ROLE_OUTPUT_GRADIENT,
  ROSIN_ROLE_BIAS,          /* epilogue: one element a row of the product, or a channel; contiguous */
  ROSIN_ROLE_RESIDUAL,      /* epilogue: as large as the result */
  ROSIN_ROLE_AUXILIARY,     /* epilogue: what the gradient of the activation needs of it */
  ROSIN_ROLE_BIAS_GRADIENT, /* epilogue: receives sums, see rosin_epilogue */
  ROSIN_ROLE_MEAN,
  ROSIN_ROLE_DEVIATION,
  ROSIN_ROLE_QUERY,
  ROSIN_ROLE_KEY,
  ROSIN_ROLE_VALUE,
  ROSIN_ROLE_STATE,
  ROSIN_ROLE_QUERY_GRADIENT,
  ROSIN_ROLE_KEY_GRADIENT,
  ROSIN_ROLE_VALUE_GRADIENT,
  ROSIN_ROLE_FIRST_STATE,
  ROSIN_ROLE_FIRST_CELL, /* of lstm alone, like all cells */
  ROSIN_ROLE_LAST_STATE,
  ROSIN_ROLE_LAST_CELL,
  ROSIN_ROLE_RESERVE, /* bytes */
  ROSIN_ROLE_FIRST_STATE_GRADIENT,
  ROSIN_ROLE_FIRST_CELL_GRADIENT,
  ROSIN_ROLE_LAST_STATE_GRADIENT,
  ROSIN_ROLE_LAST_CELL_GRADIENT
} rosin_role;

/* Element (i, j, ...) stands at i * strides[0] + j * strides[1] + ... from its place, in elements. A stride of 0 in a
 * dim of more than one element repeats; strides may be negative. call_takes: all sizes and strides are 0. */
typedef struct rosin_call_array {
  int32_t role; /* rosin_role */
  int32_t type; /* rosin_type */
  int32_t rank;
  int64_t sizes[8];
  int64_t strides[8];
} rosin_call_array;

/* Convolutions and poolings, the first spatial dim first; unused entries: stride and dilation 1, the rest 0. */
typedef struct rosin_call_window {
  int32_t spatial; /* dims, 1 to 3 */
  int32_t stride[3];
  int32_t dilation[3];
  int32_t pad_low[3];
  int32_t pad_high[3];
  int32_t window[3]; /* poolings: its size */
  int32_t groups;    /* convolutions: of channels */
  int32_t flipped;   /* convolutions: 1 a true one (the kernel is flipped), 0 a cross-correlation */
  int32_t mean;      /* poolings: 1 of the mean, 0 of the maximum */
} rosin_call_window;

typedef enum rosin_activation {
  ROSIN_ACTIVATION_NONE,
  ROSIN_ACTIVATION_RELU, /* x < 0 ? 0 : x; NaN stays */
  ROSIN_ACTIVATION_SIGMOID,
  ROSIN_ACTIVATION_TANH,
  ROSIN_ACTIVATION_GELU,          /* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) */
  ROSIN_ACTIVATION_RELU_GRADIENT, /* the result times the derivative of relu, whose auxiliary is an operand */
  ROSIN_ACTIVATION_GELU_GRADIENT  /* the same of gelu */
} rosin_activation;

/* What is done with the result before it is stored, in this order: + bias, + residual, the activation. Arrays that a
 * flag asks for are among the arrays of the call, in the order of these fields.
 *
 * auxiliary      with an activation: it is written; with the gradient of one (which cannot do without): it is read.
 *                relu: UInt8 of (bytes, n, batch...), bit i % 8 of byte i / 8 in a column is 1 where element i before
 *                the activation is above 0; columns may have more bytes than that takes, whose content is undefined.
 *                Others: the values before the activation, as large as the result.
 * bias_gradient  convolution_weights: the sums of output_gradient over all but its channels. matmul with the gradient
 *                of an activation: the sums of the result along its rows, of one batch; without: those of `left`. So
 *                (m), contiguous, in both. */
typedef struct rosin_epilogue {
  int32_t bias;
  int32_t residual;
  int32_t activation; /* rosin_activation */
  int32_t auxiliary;
  int32_t bias_gradient;
} rosin_epilogue;

/* Numbers of a kind; those that are not in the list have their default. */
typedef enum rosin_attribute_key {
  ROSIN_ATTRIBUTE_EPSILON, /* real, normalisation: added to variances; 0 */
  ROSIN_ATTRIBUTE_SCALE,   /* real, attention: of products of query and key; 1 */
  ROSIN_ATTRIBUTE_CAUSAL,  /* integer, attention: 1 where query i sees keys 0 to i only; 0 */
  ROSIN_ATTRIBUTE_DROPOUT, /* real, attention: the probability with which a weight is dropped; 0 */
  ROSIN_ATTRIBUTE_CELL     /* integer, recurrent: a rosin_cell; ROSIN_CELL_TANH */
} rosin_attribute_key;

/* What a step computes of the state h before it. s is W x + b of the input's weights, u is R h, by gates. */
typedef enum rosin_cell {
  ROSIN_CELL_TANH, /* h' = tanh(s + u) */
  ROSIN_CELL_RELU, /* h' = relu(s + u) */
  ROSIN_CELL_LSTM, /* gates i, f, g, o: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c') */
  ROSIN_CELL_GRU   /* gates r, z, n: r, z = sigmoid(s + u), n = tanh(s + r u), h' = n + z (h - n) */
} rosin_cell;

typedef struct rosin_attribute {
  int32_t key; /* rosin_attribute_key */
  int64_t integer;
  double real;
} rosin_attribute;

/* In what products are computed: in the type of the operands (sums of halves in Float32), or less exactly. */
typedef enum rosin_compute_mode {
  ROSIN_COMPUTE_EXACT,
  ROSIN_COMPUTE_TF32,
  ROSIN_COMPUTE_FLOAT16,
  ROSIN_COMPUTE_BFLOAT16
} rosin_compute_mode;

typedef struct rosin_call_description {
  size_t size;
  int32_t kind; /* rosin_call_kind */
  uint32_t array_count;
  const rosin_call_array* arrays; /* operands in the order of the kind, those of the epilogue, then the result */
  rosin_call_window window;       /* zeros for kinds without one */
  rosin_epilogue epilogue;
  int32_t accumulate;    /* 1: the result is added to what stands there, before the epilogue */
  int32_t compute;       /* rosin_compute_mode */
  int32_t deterministic; /* 1: the same operands give the same bits, always */
  uint64_t workspace;    /* bytes that call_prepare may ask for at most; 0: as many as it likes */
  int32_t scaled;        /* 1: each run brings alpha and beta, see rosin_call_numbers */
  int32_t unrounded;     /* 1: steps of the epilogue may keep digits that they would lose if they were stored between
                            (a bias is added to a sum in Float32); 0: they round like rosin's kernels, one by one */
  uint32_t attribute_count;
  const rosin_attribute* attributes;
  const void* choice; /* for call_prepare: what call_choice gave for the same description, from this device or another
                         of the same target; or null. It is ignored where the library has become another one. */
  uint64_t choice_bytes;
} rosin_call_description;

/* What differs from run to run. A scaled call adds either what stood in the result (accumulate) or a residual, or
 * neither: its result is activation(alpha * product + bias + beta * that). */
typedef struct rosin_call_numbers {
  size_t size;
  double alpha; /* scaled calls; in the type of the sums */
  double beta;
  uint64_t seed; /* calls with dropout: the same seed and offset drop the same weights, in attention and its gradient */
  uint64_t offset;
} rosin_call_numbers;

/* How a call wishes an array to lie. */
typedef enum rosin_order {
  ROSIN_ORDER_CONTIGUOUS,    /* column-major, without gaps */
  ROSIN_ORDER_STRIDED,       /* any strides */
  ROSIN_ORDER_CHANNELS_FIRST /* images: channels, spatial dims, batch */
} rosin_order;

typedef struct rosin_call rosin_call; /* a prepared vendor call; it may run many times, on one stream at a time */

#ifdef __cplusplus
}
#endif

#endif
