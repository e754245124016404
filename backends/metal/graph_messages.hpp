// What of Metal Performance Shaders Graph is used: messages and numbers, by Apple's documentation
// (developer.apple.com/documentation/metalperformanceshadersgraph, macOS 15). Shapes are NSArrays of NSNumbers, the
// slowest dim first. Read first: messages.hpp.
#pragma once

#include <cstdint>

#include "metal/messages.hpp"

namespace rosin::metal {

/// MPSGraphPaddingStyle, MPSGraphTensorNamedDataLayout
constexpr uint64_t padding_explicit = 0, layout_nchw = 0, layout_oihw = 2;
/// MPSGraphOptimization: all of it runs on the GPU. (With the next level parts may run in half precision elsewhere.)
constexpr uint64_t optimization_core = 0;

namespace send {

// NSObject, NSNumber, NSArray, NSDictionary
inline const Message<Id()> alloc("alloc");
inline const Message<bool(Selector)> instances_respond("instancesRespondToSelector:");
inline const Message<bool(Id)> is_equal("isEqual:");
inline const Message<Id(int64_t)> number("numberWithLongLong:");
inline const Message<Id(const Id*, uint64_t)> array_of("arrayWithObjects:count:");
inline const Message<Id(Id, Id)> dictionary_of("dictionaryWithObjects:forKeys:");

// MPSGraph
inline const Message<Id(Id, uint32_t, Id)> placeholder("placeholderWithShape:dataType:name:");
inline const Message<Id(double, uint32_t)> constant("constantWithScalar:dataType:");
inline const Message<Id(double, Id, uint32_t)> constant_of_shape("constantWithScalar:shape:dataType:");
inline const Message<Id(Id, uint32_t, Id)> cast("castTensor:toType:name:");
inline const Message<Id(Id, Id, Id)> transpose("transposeTensor:permutation:name:"),
    reshape("reshapeTensor:withShape:name:"), reverse("reverseTensor:axes:name:"),
    add("additionWithPrimaryTensor:secondaryTensor:name:"), less("lessThanWithPrimaryTensor:secondaryTensor:name:"),
    multiply_matrices("matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:");
inline const Message<Id(Id, Id, Id, Id)> select(
    "selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:"),
    convolution("convolution2DWithSourceTensor:weightsTensor:descriptor:name:");
inline const Message<Id(Id, Id, Id, Id, Id)> convolution_data(
    "convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:forwardConvolutionDescriptor:name:"),
    convolution_weights(
        "convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:"
        "forwardConvolutionDescriptor:name:");
/// Diagonals below and above that stay, below 0 all of them.
inline const Message<Id(Id, int64_t, int64_t, Id)> band_part("bandPartWithTensor:numLower:numUpper:name:");
/// Queries, keys, values, [mask,] scale.
inline const Message<Id(Id, Id, Id, float, Id)> attention(
    "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:scale:name:");
inline const Message<Id(Id, Id, Id, Id, float, Id)> masked_attention(
    "scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale:name:");
/// Strides and dilations along x and y, groups, paddings at the left, right, top and bottom, style, layouts.
inline const Message<Id(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t)>
    convolution_descriptor(
        "descriptorWithStrideInX:strideInY:dilationRateInX:dilationRateInY:groups:paddingLeft:paddingRight:"
        "paddingTop:paddingBottom:paddingStyle:dataLayout:weightsLayout:");

// MPSGraphDevice, MPSGraphShapedType, MPSGraphCompilationDescriptor, MPSGraphExecutable
inline const Message<Id(Id)> graph_device("deviceWithMTLDevice:");
inline const Message<Id(Id, uint32_t)> init_shaped_type("initWithShape:dataType:");
inline const Message<void(uint64_t)> set_optimization("setOptimizationLevel:");
inline const Message<void(bool)> set_waiting("setWaitForCompilationCompletion:");
inline const Message<Id(Id, Id, Id, Id, Id)> compile_graph(
    "compileWithDevice:feeds:targetTensors:targetOperations:compilationDescriptor:");
inline const Message<Id()> feed_tensors("feedTensors");
inline const Message<Id(Id, Id, Id, Id)> encode_graph(
    "encodeToCommandBuffer:inputsArray:resultsArray:executionDescriptor:");

// MPSNDArrayDescriptor, MPSNDArray, MPSGraphTensorData, MPSCommandBuffer
inline const Message<Id(uint32_t, Id)> array_descriptor("descriptorWithDataType:shape:");
inline const Message<void(bool)> set_packed_rows("setPreferPackedRows:");
inline const Message<Id(Id, uint64_t, Id)> init_array("initWithBuffer:offset:descriptor:");
inline const Message<Id(Id)> init_tensor_data("initWithMPSNDArray:"),
    mps_command_buffer("commandBufferWithCommandBuffer:");
inline const Message<Id()> root_command_buffer("rootCommandBuffer");

}  // namespace send
}  // namespace rosin::metal
