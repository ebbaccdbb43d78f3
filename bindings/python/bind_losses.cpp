// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/metrics.hpp>

#include <cmath>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<F1> f1_names[] = {{F1::binary, "binary"}, {F1::micro, "micro"}, {F1::macro, "macro"}};

enum class Total { mean, sum };
constexpr EnumName<Total> total_names[] = {{Total::mean, "mean"}, {Total::sum, "sum"}};

bool is_sum(const std::string& reduction) {
  return choice(total_names, reduction, "reduction") == Total::sum;
}

/// Labels of classes and the mask of the rows that count.
struct Labels {
  Labels(const Variable& logits, nb::handle given, nb::handle mask_given)
      : classes(given, "labels"), mask(mask_given, logits.num_rows(), "mask") {}
  Ids classes;
  Mask mask;
};

/// Weights of rows, or None. They keep an array of the library's precision alive.
struct RowFactors {
  /// With `sums`, None is 1 for each of the rows.
  RowFactors(nb::handle given, bool sums, Index rows) {
    if (!given.is_none())
      values = tensor_of(given);
    else if (sums)
      values = Tensor::full({rows}, 1);
  }
  [[nodiscard]] RowWeights span() const {
    if (!values.defined()) return std::nullopt;
    return values.values();
  }
  Tensor values;
};

/// A metric of classes: (logits, labels, mask=None, comm=None).
template <class F>
auto class_metric(F f) {
  return [f](const Variable& logits, ArrayHandle labels, ArrayHandle mask, std::optional<Communicator> comm) {
    const Labels given(logits, labels, mask);
    const Communicator& all = or_default(comm);
    return compute([&] { return f(logits.value(), given.classes.span(), given.mask.span(), all); });
  };
}

/// A metric of numbers: (predictions, targets, mask=None, comm=None).
template <class F>
auto value_metric(F f) {
  return [f](const Variable& predictions, ArrayHandle targets, ArrayHandle mask,
             std::optional<Communicator> comm) {
    const Tensor wanted = tensor_of(targets);
    const Mask rows(mask, predictions.num_rows(), "mask");
    const Communicator& all = or_default(comm);
    return compute([&] { return f(predictions.value(), wanted, rows.span(), all); });
  };
}

/// A metric of classes, or of targets [rows, columns], a column for each of several labels.
template <class Classes, class Targets>
auto score_metric(Classes of_classes, Targets of_targets) {
  return [=](const Variable& scores, ArrayHandle labels, ArrayHandle mask, std::optional<Communicator> comm) {
    const nb::object array = nb::module_::import_("numpy").attr("asarray")(labels);
    const bool one_label = nb::cast<int>(array.attr("ndim")) == 1;
    if (one_label && scores.value().row_size() > 1)
      return class_metric(of_classes)(scores, array, mask, comm);
    if (!one_label) return value_metric(of_targets)(scores, array, mask, comm);
    // one score for each row, as a list or a column; -1 is no label, as for classes
    nb::object targets = array.attr("reshape")(-1, 1);
    if (dtype_of(targets) != "bool")
      targets = nb::module_::import_("numpy").attr("where")(targets.attr("__eq__")(-1), NAN, targets);
    return value_metric(of_targets)(Variable(scores.value().reshape({scores.num_rows(), 1})), targets, mask,
                                    comm);
  };
}

/// Targets that get a gradient if they are a tensor that requires one.
Variable target_of(nb::handle given) {
  Variable tensor;
  return nb::try_cast(given, tensor, false) ? tensor : Variable(tensor_of(given));
}

/// Collective. The sum of terms over the elements of `x` on all ranks, of their mean.
Variable sum_of_mean(const Variable& mean, const Variable& x, const Communicator& comm) {
  return mean * static_cast<real>(comm.all_reduce(x.shape().size()));
}

/// A loss of numbers, over all elements or, with a mask or weights of rows, over rows.
template <class All, class Masked>
auto value_loss(All all_rows, Masked masked) {
  return [=](const Variable& prediction, ArrayHandle target, ArrayHandle mask, ArrayHandle row_weights,
             std::optional<Communicator> comm, const std::string& reduction) {
    const Variable differentiable = target_of(target);
    const Communicator& all = or_default(comm);
    const bool sums = is_sum(reduction);
    if (mask.is_none() && row_weights.is_none())
      return PyTensor(compute([&] {
        const Variable mean = all_rows(prediction, differentiable, all);
        return sums ? sum_of_mean(mean, prediction, all) : mean;
      }));
    const Mask rows(mask, prediction.num_rows(), "mask");
    const RowFactors weights(row_weights, sums, prediction.num_rows());
    const auto column = [](const Variable& x) {  // of a row of one number each
      return x.shape().dims() == 1 ? reshape(x, {x.num_rows(), 1}) : x;
    };
    return PyTensor(compute([&] {
      return masked(column(prediction), column(differentiable.detach()).value(), rows.span(), all,
                    weights.span());
    }));
  };
}

}  // namespace

void bind_losses(Definitions& module) {
  using namespace nb::literals;
  const auto of_mask = "mask"_a = nb::none(), of_row_weights = "row_weights"_a = nb::none(),
             of_comm = "comm"_a = nb::none();
  const auto by_name = nb::kw_only();
  const auto of_reduction = "reduction"_a = "mean";
  module.def(
      "cross_entropy",
      [](const Variable& logits, ArrayHandle labels, ArrayHandle mask,
         const std::optional<std::vector<double>>& weight, double label_smoothing, ArrayHandle row_weights,
         std::optional<Communicator> comm, const std::string& reduction) {
        const Labels given(logits, labels, mask);
        const RowFactors factors(row_weights, is_sum(reduction), logits.num_rows());
        const std::vector<double> weights = weight.value_or(std::vector<double>());
        const Communicator& all = or_default(comm);
        const CrossEntropyOptions options{
            .class_weights = weights, .label_smoothing = label_smoothing, .row_weights = factors.span()};
        return compute(
            [&] { return cross_entropy(logits, given.classes.span(), given.mask.span(), all, options); });
      },
      "input"_a, "target"_a, of_mask, "weight"_a = nb::none(), "label_smoothing"_a = 0.0, of_row_weights,
      of_comm, by_name, of_reduction,
      "Collective. The mean over the rows of all ranks that the mask has and whose label is not -1. input "
      "[rows, classes], target [rows] integers. With row_weights [rows], which all ranks give or none, it is "
      "the sum of the rows' terms times their weights, and with reduction=\"sum\" the sum of the terms.");
  module.def(
      "balanced_class_weights",
      [](ArrayHandle labels, ArrayHandle mask, Index num_classes, std::optional<Communicator> comm) {
        require<InputError>(num_classes >= 1, "num_classes is ", num_classes, ", expected 1 or more");
        const Ids classes(labels, "labels");
        const Mask rows(mask, std::ssize(classes.span()), "mask");
        const Communicator& all = or_default(comm);
        return compute([&] { return balanced_class_weights(classes.span(), rows.span(), num_classes, all); });
      },
      "labels"_a, "mask"_a.none(), "num_classes"_a, of_comm, "Collective.");
  const auto mean_square = [](const auto&... arguments) { return mse(arguments...); };
  module.def("mse_loss", value_loss(mean_square, mean_square), "input"_a, "target"_a, of_mask, of_row_weights,
             of_comm, by_name, of_reduction,
             "Collective. The mean of squares over the elements of all ranks, or of the rows of the mask. "
             "With row_weights [rows], which all ranks give or none, it is the sum of the elements' terms "
             "times the weights of their rows, and with reduction=\"sum\" the sum of the terms. The target "
             "gets a gradient without mask and "
             "row_weights only.");
  const auto mean_distance = [](const auto&... arguments) { return l1(arguments...); };
  module.def("l1_loss", value_loss(mean_distance, mean_distance), "input"_a, "target"_a, of_mask,
             of_row_weights, of_comm, by_name, of_reduction,
             "Collective. The mean of absolute values; mask, row_weights and reduction as of mse_loss().");
  module.def(
      "huber_loss",
      [](const Variable& prediction, ArrayHandle target, double delta, ArrayHandle mask,
         ArrayHandle row_weights, std::optional<Communicator> comm, const std::string& reduction) {
        const auto all_rows = [=](const Variable& p, const Variable& t, const Communicator& all) {
          return huber(p, t, all, delta);
        };
        const auto masked = [=](const Variable& p, const Tensor& t, std::span<const std::uint8_t> rows,
                                const Communicator& all,
                                const RowWeights& weights) { return huber(p, t, rows, all, weights, delta); };
        return value_loss(all_rows, masked)(prediction, target, mask, row_weights, comm, reduction);
      },
      "input"_a, "target"_a, "delta"_a = 1.0, of_mask, of_row_weights, of_comm, by_name, of_reduction,
      "Collective. The mean of the Huber loss over the elements of all ranks; mask, row_weights and "
      "reduction as of mse_loss().");
  const auto bce = [](const Variable& x, const Variable& target, const Communicator& all) {
    return bce_with_logits(x, target.value(), all);
  };
  const auto masked_bce = [](const auto&... arguments) { return bce_with_logits(arguments...); };
  module.def("binary_cross_entropy_with_logits", value_loss(bce, masked_bce), "input"_a, "target"_a, of_mask,
             of_row_weights, of_comm, by_name, of_reduction,
             "Collective. The mean over the elements of all ranks; mask, row_weights and reduction as of "
             "mse_loss(). The "
             "target is a constant.");

  using Classes = double (*)(const Tensor&, std::span<const std::int64_t>, Columns, const Communicator&);
  using Targets = double (*)(const Tensor&, const Tensor&, Columns, const Communicator&);
  module.def("accuracy", class_metric(static_cast<Classes>(&accuracy)), "logits"_a, "labels"_a, of_mask,
             of_comm,
             "Collective. The fraction of rows whose largest logit is that of the label; nan without rows.");
  module.def("roc_auc", score_metric(static_cast<Classes>(&roc_auc), static_cast<Targets>(&roc_auc)),
             "logits"_a, "labels"_a, of_mask, of_comm,
             "Collective. The area under the ROC curve: of class 1 against class 0, with one score or two "
             "for each row, or the mean over the "
             "classes, for labels [rows]; the mean over the columns for targets [rows, columns] of 0 and 1.");
  module.def("average_precision",
             score_metric(static_cast<Classes>(&average_precision), static_cast<Targets>(&average_precision)),
             "logits"_a, "labels"_a, of_mask, of_comm, "Collective. Labels or targets as of roc_auc().");
  module.def(
      "f1_score",
      [](const Variable& logits, ArrayHandle labels, ArrayHandle mask, const std::string& average,
         std::optional<Communicator> comm) {
        const F1 how = choice(f1_names, average, "average");
        const auto f1 = [how](const Tensor& x, const auto& wanted, Columns rows, const Communicator& all) {
          return f1_score(x, wanted, rows, how, all);
        };
        return score_metric(f1, f1)(logits, labels, mask, comm);
      },
      "logits"_a, "labels"_a, of_mask, "average"_a = "micro", of_comm,
      "Collective. 2 TP / (2 TP + FP + FN) of labels or targets as of roc_auc(): \"binary\" of class 1, "
      "\"micro\" of all together, \"macro\" the mean over the classes or columns.");
  module.def("mean_absolute_error", value_metric(&mean_absolute_error), "predictions"_a, "targets"_a, of_mask,
             of_comm, "Collective.");
  module.def("mean_squared_error", value_metric(&mean_squared_error), "predictions"_a, "targets"_a, of_mask,
             of_comm, "Collective.");
  module.def("r2_score", value_metric(&r2_score), "predictions"_a, "targets"_a, of_mask, of_comm,
             "Collective.");
}

}}}  // namespace sar
