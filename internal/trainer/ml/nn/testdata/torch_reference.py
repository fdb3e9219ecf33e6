# Computes loss and gradients of graphs with PyTorch's autograd in float64, and a few steps of an optimizer. Reads a list of
# cases from standard input and writes a list of answers.
import json
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def images(x):
    return x.permute(0, 3, 1, 2)


def pixels(x):
    return x.permute(0, 2, 3, 1)


def pad(a, x, window, value):
    """TensorFlow's "same" padding."""
    borders = []
    for size, kernel, stride in ((x.shape[3], a[window + "_w"], a["stride_w"]), (x.shape[2], a[window + "_h"], a["stride_h"])):
        total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
        borders += [total // 2, total - total // 2]
    return F.pad(x, borders, value=value)


def conv(a, x, w, b):
    x = images(x)
    if a["padding"] == "same":
        x = pad(a, x, "kernel", 0)
    return pixels(F.conv2d(x, w.permute(3, 2, 0, 1), b, stride=(a["stride_h"], a["stride_w"])))


def normalize(a, x, gamma, beta):
    axes = tuple(range(x.dim() - 1))
    mean, variance = x.mean(axes), x.var(axes, unbiased=False)
    return (x - mean) / torch.sqrt(variance + a["epsilon"]) * gamma + beta


def pool(f, a, x):
    return f(x, (a["pool_h"], a["pool_w"]), stride=(a["stride_h"], a["stride_w"]))


def max_pool(a, x):
    x = images(x)
    if a.get("padding") == "same":
        x = pad(a, x, "pool", -torch.inf)
    return pixels(pool(F.max_pool2d, a, x))


def average_pool(a, x):
    x = images(x)
    if a.get("padding") != "same":
        return pixels(pool(F.avg_pool2d, a, x))
    share = pool(F.avg_pool2d, a, pad(a, torch.ones_like(x), "pool", 0))  # of the window that is in the image
    return pixels(pool(F.avg_pool2d, a, pad(a, x, "pool", 0)) / share)


def forward(model, inputs, w):
    values = []
    inputs = iter(inputs)
    for node in model["nodes"]:
        op, name = node["op"], node["name"]
        xs = [values[i] for i in node.get("inputs", [])]
        if op == "input":
            y = torch.tensor(next(inputs), dtype=torch.long if node.get("integer") else None).reshape([-1] + node["shape"])
        elif op == "embedding":
            y = F.embedding(xs[0], w[name + "/embeddings"], sparse=sparse(model["optimizer"]))
        elif op == "reduce_sum":
            a = node[op]
            y = xs[0].sum(tuple(range(1 + a["from"], 1 + a["from"] + a["axes"])), keepdim=a["keep_dims"])
        elif op == "broadcast":
            y = xs[0].expand(-1, *node["shape"])
        elif op == "scale":
            y = xs[0] * node[op]["value"]
        elif op == "subtract":
            y = xs[0] - xs[1]
        elif op == "conv2d":
            y = conv(node[op], xs[0], w[name + "/kernel"], w[name + "/bias"])
        elif op == "dense":
            y = xs[0] @ w[name + "/kernel"] + w[name + "/bias"]
        elif op == "batch_norm":
            y = normalize(node[op], xs[0], w[name + "/gamma"], w[name + "/beta"])
        elif op == "max_pool":
            y = max_pool(node[op], xs[0])
        elif op == "average_pool":
            y = average_pool(node[op], xs[0])
        elif op == "global_average_pool":
            y = xs[0].mean((1, 2))
        elif op in ("reshape", "flatten"):
            y = xs[0].reshape([-1] + node["shape"])
        elif op == "dropout":
            assert node[op]["rate"] == 0
            y = xs[0]
        elif op == "leaky_relu":
            y = F.leaky_relu(xs[0], node[op]["alpha"])
        elif op == "add":
            y = sum(xs[1:], xs[0])
        elif op == "multiply":
            y = xs[0]
            for other in xs[1:]:
                y = y * other
        elif op == "concatenate":
            y = torch.cat(xs, -1)
        else:
            y = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softmax": lambda v: torch.softmax(v, -1)}[op](xs[0])
        values.append(y)
    return values[model["output"]]


def sparse(o):
    """Whether PyTorch's optimizer takes row gradients; Keras' Adam and RMSprop walk the table as PyTorch's do for dense ones."""
    return o["kind"] in ("sgd", "adagrad")


def loss_of(model, output, labels):
    if model["loss"] == "sparse_softmax_cross_entropy":
        return F.cross_entropy(output, labels.long())
    if model["loss"] == "sigmoid_cross_entropy":
        return F.binary_cross_entropy_with_logits(output.flatten(), labels.double())
    return F.mse_loss(output.flatten(), labels.double())


def make(o, weights):
    rate, momentum, epsilon = o["learning_rate"], o.get("momentum", 0), o.get("epsilon", 0)
    if o["kind"] == "sgd":
        return torch.optim.SGD(weights, rate, momentum=momentum, nesterov=o.get("nesterov", False))
    if o["kind"] == "adam":
        return torch.optim.Adam(weights, rate, betas=(o["beta_1"], o["beta_2"]), eps=epsilon)
    if o["kind"] == "adagrad":
        return torch.optim.Adagrad(weights, rate, initial_accumulator_value=o["initial_accumulator_value"], eps=epsilon)
    if o["kind"] == "adamax":  # adds epsilon to |g|, and Keras to the larger of that and what was: the same but for a share of epsilon
        return torch.optim.Adamax(weights, rate, betas=(o["beta_1"], o["beta_2"]), eps=epsilon)
    assert o["kind"] == "rmsprop", o
    return torch.optim.RMSprop(weights, rate, alpha=o["rho"], momentum=momentum, eps=epsilon)


def answer(case):
    model = case["model"]
    w = {t["Name"]: torch.tensor(t["Data"]).reshape(t["Shape"]).requires_grad_() for t in case["weights"]}
    labels = torch.tensor(case["targets"] or case["labels"])
    optimizer = make(model["optimizer"], list(w.values()))
    for step in range(case["steps"] + 1):
        optimizer.zero_grad()
        loss = loss_of(model, forward(model, case["inputs"], w), labels)
        loss.backward()
        if step == 0:
            first = loss.item()
            gradients = {name: v.grad.to_dense().flatten().tolist() for name, v in w.items()}
        if step == case["steps"]:
            break
        if model["optimizer"]["kind"] == "adam":
            # Keras adds its epsilon to the root of the second moment before that is corrected.
            corrected = (1 - model["optimizer"]["beta_2"] ** (step + 1)) ** 0.5
            optimizer.param_groups[0]["eps"] = model["optimizer"]["epsilon"] / corrected
        optimizer.step()
    return {"loss": first, "gradients": gradients, "weights": {name: v.flatten().tolist() for name, v in w.items()}}


json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)
