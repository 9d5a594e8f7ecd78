package dev.millrace.policy.decoder;

import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Reference implementation: the decoder in plain loops and double precision, one token at a time, independent of the
 * graphs. For another {@link Precision} it rounds and quantizes accordingly.
 */
public final class NaiveDecoder {
    private final DecoderShape shape;
    private final Precision precision;
    private final Map<String, double[]> tensors = new LinkedHashMap<>();
    private RoutedExperts replayed;

    public NaiveDecoder(Weights weights) {
        this(weights, Precision.F32);
    }

    public NaiveDecoder(Weights weights, Precision precision) {
        this.shape = weights.shape();
        this.precision = precision;
        for (TensorSpec spec : shape.tensors()) {
            FloatBuffer values = weights.tensor(spec.name());
            double[] tensor = new double[values.remaining()];
            for (int i = 0; i < tensor.length; i++) {
                tensor[i] = kept(values.get(i));
            }
            tensors.put(spec.name(), tensor);
        }
    }

    /** From now on tokens go through these experts where any are noted; null for the router's own. */
    public NaiveDecoder replaying(RoutedExperts routing) {
        replayed = routing;
        return this;
    }

    /** The live values of one tensor, for finite differences. */
    public double[] tensor(String name) {
        return tensors.get(name);
    }

    /** {@code log softmax(logits / temperature)} after each token: [length][vocab]; row t is about token t+1. */
    public double[][] logProbs(int[] tokens, double temperature) {
        double[][] hidden = hidden(tokens);
        double[][] result = new double[hidden.length][];
        for (int t = 0; t < result.length; t++) {
            double[] logits = kept(
                    times(tensors.get(shape.tiedHead() ? "model.embed_tokens.weight" : "lm_head.weight"), hidden[t]));
            result[t] = logSoftmax(logits, temperature);
        }
        return result;
    }

    /** Value after each token. */
    public double[] values(int[] tokens) {
        double[][] hidden = hidden(tokens);
        double[] values = new double[hidden.length];
        for (int t = 0; t < values.length; t++) {
            values[t] = times(tensors.get("value_head.weight"), hidden[t])[0] + tensors.get("value_head.bias")[0];
        }
        return values;
    }

    private double[][] hidden(int[] tokens) {
        int n = tokens.length;
        double[][] x = new double[n][];
        for (int t = 0; t < n; t++) {
            x[t] = row(tensors.get("model.embed_tokens.weight"), tokens[t], shape.hiddenSize());
        }
        for (int layer = 0; layer < shape.layers(); layer++) {
            String prefix = "model.layers." + layer + ".";
            double[][] mixed = attention(x, prefix, reach(layer));
            for (int t = 0; t < n; t++) {
                x[t] = kept(plus(x[t], linear(kept(mixed[t]), prefix + "self_attn.o_proj")));
                double[] h = norm(x[t], prefix + "post_attention_layernorm.weight");
                double[] out = shape.traits().experts().present()
                        ? experts(h, prefix + "mlp.", t, layer)
                        : feedForward(h, prefix + "mlp.");
                x[t] = kept(plus(x[t], out));
            }
        }
        double[][] result = new double[n][];
        for (int t = 0; t < n; t++) {
            result[t] = norm(x[t], "model.norm.weight");
        }
        return result;
    }

    private double[] feedForward(double[] h, String prefix) {
        double[] gate = linear(h, prefix + "gate_proj");
        double[] up = linear(h, prefix + "up_proj");
        for (int i = 0; i < gate.length; i++) {
            gate[i] = kept(kept(gate[i] / (1 + Math.exp(-gate[i]))) * up[i]);
        }
        return linear(gate, prefix + "down_proj");
    }

    private double[] experts(double[] h, String prefix, int token, int layer) {
        Experts experts = shape.traits().experts();
        double[] logs = logSoftmax(kept(times(tensors.get(prefix + "gate.weight"), h)), 1);
        boolean[] taken = new boolean[experts.count()];
        double sum = 0;
        for (int rank = 0; rank < experts.perToken(); rank++) {
            int best = -1;
            for (int e = 0; e < logs.length; e++) {
                best = !taken[e] && (best < 0 || logs[e] > logs[best]) ? e : best;
            }
            if (replayed != null && token < replayed.tokens() && replayed.isNoted(token, layer)) {
                best = replayed.ids()[replayed.at(token, layer) + rank];
            }
            taken[best] = true;
            sum += Math.exp(logs[best]);
        }
        double[] out = new double[h.length];
        for (int e = 0; e < logs.length; e++) {
            if (taken[e]) {
                double weight = kept(Math.exp(logs[e]) / (experts.normalised() ? sum : 1));
                double[] of = feedForward(h, prefix + "experts." + e + ".");
                for (int i = 0; i < of.length; i++) {
                    of[i] *= weight;
                }
                out = kept(plus(out, kept(of)));
            }
        }
        return out;
    }

    /** How many tokens a token of this layer sees, itself included. */
    private int reach(int layer) {
        DecoderTraits traits = shape.traits();
        return traits.slidingWindow() > 0 && layer >= traits.fullLayers()
                ? traits.slidingWindow()
                : shape.maxPositions();
    }

    private double[] normByHead(double[] x, String weight) {
        if (!shape.traits().queryKeyNorm()) {
            return x;
        }
        double[] result = new double[x.length];
        for (int from = 0; from < x.length; from += shape.headSize()) {
            double[] normed = norm(Arrays.copyOfRange(x, from, from + shape.headSize()), weight);
            System.arraycopy(normed, 0, result, from, normed.length);
        }
        return result;
    }

    private double[][] attention(double[][] x, String prefix, int reach) {
        int n = x.length;
        int size = shape.headSize();
        double[][] q = new double[n][];
        double[][] k = new double[n][];
        double[][] v = new double[n][];
        for (int t = 0; t < n; t++) {
            double[] h = norm(x[t], prefix + "input_layernorm.weight");
            q[t] = rotate(normByHead(linear(h, prefix + "self_attn.q_proj"), prefix + "self_attn.q_norm.weight"), t);
            k[t] = rotate(normByHead(linear(h, prefix + "self_attn.k_proj"), prefix + "self_attn.k_norm.weight"), t);
            v[t] = linear(h, prefix + "self_attn.v_proj");
        }
        double[][] mixed = new double[n][shape.heads() * size];
        for (int t = 0; t < n; t++) {
            for (int head = 0; head < shape.heads(); head++) {
                int kv = head / shape.headsPerKvHead();
                double[] scores = new double[t + 1];
                Arrays.fill(scores, Double.NEGATIVE_INFINITY);
                for (int s = Math.max(0, t - reach + 1); s <= t; s++) {
                    scores[s] = 0;
                    for (int i = 0; i < size; i++) {
                        scores[s] += q[t][head * size + i] * k[s][kv * size + i] / Math.sqrt(size);
                    }
                }
                double[] logWeights = logSoftmax(scores, 1);
                for (int s = 0; s <= t; s++) {
                    for (int i = 0; i < size; i++) {
                        mixed[t][head * size + i] += Math.exp(logWeights[s]) * v[s][kv * size + i];
                    }
                }
            }
        }
        return mixed;
    }

    private double[] rotate(double[] x, int position) {
        int size = shape.headSize();
        int half = size / 2;
        double[] frequencies =
                shape.traits().ropeScaling().frequencies(shape.ropeTheta(), size); // FamilyTwin checks them
        double factor = shape.traits().ropeScaling().attentionFactor();
        double[] turned = new double[x.length];
        for (int head = 0; head < x.length / size; head++) {
            for (int i = 0; i < half; i++) {
                double angle = position * frequencies[i];
                double a = factor * x[head * size + i];
                double b = factor * x[head * size + half + i];
                turned[head * size + i] = a * Math.cos(angle) - b * Math.sin(angle);
                turned[head * size + half + i] = b * Math.cos(angle) + a * Math.sin(angle);
            }
        }
        return kept(turned);
    }

    private double[] norm(double[] x, String weight) {
        double square = 0;
        for (double value : x) {
            square += value * value / x.length;
        }
        double[] scale = tensors.get(weight);
        double[] result = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            result[i] = x[i] / Math.sqrt(square + shape.rmsNormEps()) * scale[i];
        }
        return kept(result);
    }

    private double[] linear(double[] x, String name) {
        double[] matrix = tensors.get(name + ".weight");
        double[] result = precision == Precision.INT8 ? integerTimes(matrix, x) : times(matrix, x);
        double[] bias = tensors.get(name + ".bias");
        return kept(bias == null ? result : plus(result, bias));
    }

    /** Each row of the matrix and the vector as whole multiples of a 127th of its largest value. */
    private static double[] integerTimes(double[] matrix, double[] x) {
        double[] result = new double[matrix.length / x.length];
        double scale = largest(x) / 127;
        for (int o = 0; o < result.length; o++) {
            double[] row = row(matrix, o, x.length);
            double rowScale = largest(row) / 127;
            for (int i = 0; i < x.length; i++) {
                result[o] += Math.rint(row[i] / rowScale) * Math.rint(x[i] / scale);
            }
            result[o] *= rowScale * scale;
        }
        return result;
    }

    private static double largest(double[] x) {
        return Arrays.stream(x).map(Math::abs).max().orElseThrow();
    }

    private double[] kept(double[] values) {
        return Arrays.stream(values).map(this::kept).toArray();
    }

    /** Rounds to 8 significant bits, halves to even, if the precision is bfloat16. */
    private double kept(double value) {
        if (precision != Precision.BF16 || value == 0) {
            return value;
        }
        double place = Math.scalb(1.0, Math.getExponent(value) - 7);
        return Math.rint(value / place) * place;
    }

    private static double[] times(double[] matrix, double[] x) {
        double[] result = new double[matrix.length / x.length];
        for (int i = 0; i < matrix.length; i++) {
            result[i / x.length] += matrix[i] * x[i % x.length];
        }
        return result;
    }

    private static double[] plus(double[] a, double[] b) {
        double[] sum = a.clone();
        for (int i = 0; i < sum.length; i++) {
            sum[i] += b[i];
        }
        return sum;
    }

    private static double[] row(double[] matrix, int row, int width) {
        return Arrays.copyOfRange(matrix, row * width, (row + 1) * width);
    }

    private static double[] logSoftmax(double[] logits, double temperature) {
        double max = Double.NEGATIVE_INFINITY;
        for (double logit : logits) {
            max = Math.max(max, logit / temperature);
        }
        double sum = 0;
        for (double logit : logits) {
            sum += Math.exp(logit / temperature - max);
        }
        double[] result = new double[logits.length];
        for (int i = 0; i < logits.length; i++) {
            result[i] = logits[i] / temperature - max - Math.log(sum);
        }
        return result;
    }
}
