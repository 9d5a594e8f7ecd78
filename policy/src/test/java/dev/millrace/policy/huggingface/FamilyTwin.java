package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/**
 * Independent implementation of the families in plain loops and double precision, from their published equations and
 * the keys of {@code config.json}: Llama (RMSNorm, rotary positions, grouped queries, SwiGLU), Qwen2 (biases), Qwen3
 * (norms of queries and keys, mixtures of experts), Mistral (sliding window); position interpolation, Llama 3.1's
 * frequencies and YaRN. Shares nothing with the decoder that it is compared with.
 */
final class FamilyTwin {
    private final JsonNode config;
    private final Map<String, double[]> tensors;
    private final int heads;
    private final int keyHeads;
    private final int head;

    FamilyTwin(FamilyCheckpoint checkpoint) {
        this.config = checkpoint.config();
        this.tensors = checkpoint.tensors();
        this.heads = config.get("num_attention_heads").asInt();
        this.keyHeads = config.path("num_key_value_heads").asInt(heads);
        this.head = config.path("head_dim").asInt(config.get("hidden_size").asInt() / heads);
    }

    /** {@code ln p(token | before)} after each token: [length][vocabulary]. */
    double[][] logProbs(int[] tokens) {
        int n = tokens.length;
        int hidden = config.get("hidden_size").asInt();
        double[] embedding = tensors.get("model.embed_tokens.weight");
        double[][] x = new double[n][hidden];
        for (int t = 0; t < n; t++) {
            System.arraycopy(embedding, tokens[t] * hidden, x[t], 0, hidden);
        }
        for (int layer = 0; layer < config.get("num_hidden_layers").asInt(); layer++) {
            attention(x, layer);
            String mlp = "model.layers." + layer + ".mlp.";
            for (double[] row : x) {
                double[] h = norm(row, "model.layers." + layer + ".post_attention_layernorm.weight");
                add(row, config.has("num_experts") ? experts(mlp, h) : feedForward(mlp, h));
            }
        }
        boolean tied = config.path("tie_word_embeddings").asBoolean(false);
        double[] out = tied ? embedding : tensors.get("lm_head.weight");
        double[][] logProbs = new double[n][];
        for (int t = 0; t < n; t++) {
            logProbs[t] = product(out, norm(x[t], "model.norm.weight"));
            double max = Double.NEGATIVE_INFINITY;
            for (double logit : logProbs[t]) {
                max = Math.max(max, logit);
            }
            double sum = 0;
            for (double logit : logProbs[t]) {
                sum += Math.exp(logit - max);
            }
            for (int i = 0; i < logProbs[t].length; i++) {
                logProbs[t][i] -= max + Math.log(sum);
            }
        }
        return logProbs;
    }

    private double[] feedForward(String mlp, double[] h) {
        double[] gate = linear(mlp + "gate_proj", h);
        double[] up = linear(mlp + "up_proj", h);
        for (int i = 0; i < gate.length; i++) {
            gate[i] *= up[i] / (1 + Math.exp(-gate[i]));
        }
        return linear(mlp + "down_proj", gate);
    }

    /** As Qwen3's report and code have it: softmax over all, the likeliest few, their weights normalised or not. */
    private double[] experts(String mlp, double[] h) {
        double[] p = product(tensors.get(mlp + "gate.weight"), h);
        double total = 0;
        for (int e = 0; e < p.length; e++) {
            p[e] = Math.exp(p[e]);
            total += p[e];
        }
        double chosen = 0;
        double[] out = new double[h.length];
        for (int rank = 0; rank < config.get("num_experts_per_tok").asInt(); rank++) {
            int best = 0;
            for (int e = 1; e < p.length; e++) {
                best = p[e] > p[best] ? e : best;
            }
            double[] of = feedForward(mlp + "experts." + best + ".", h);
            for (int i = 0; i < out.length; i++) {
                out[i] += p[best] * of[i];
            }
            chosen += p[best];
            p[best] = -1;
        }
        for (int i = 0; i < out.length; i++) {
            out[i] /= config.path("norm_topk_prob").asBoolean(false) ? chosen : total;
        }
        return out;
    }

    private void attention(double[][] x, int layer) {
        String self = "model.layers." + layer + ".self_attn.";
        int n = x.length;
        double[][] q = new double[n][];
        double[][] k = new double[n][];
        double[][] v = new double[n][];
        for (int t = 0; t < n; t++) {
            double[] h = norm(x[t], "model.layers." + layer + ".input_layernorm.weight");
            q[t] = turned(perHead(linear(self + "q_proj", h), self + "q_norm.weight"), t);
            k[t] = turned(perHead(linear(self + "k_proj", h), self + "k_norm.weight"), t);
            v[t] = linear(self + "v_proj", h);
        }
        for (int t = 0; t < n; t++) {
            double[] mixed = new double[heads * head];
            for (int each = 0; each < heads; each++) {
                int key = each * keyHeads / heads;
                double total = 0;
                for (int s = Math.max(0, t - reach(layer) + 1); s <= t; s++) {
                    double score = 0;
                    for (int i = 0; i < head; i++) {
                        score += q[t][each * head + i] * k[s][key * head + i];
                    }
                    double weight = Math.exp(score / Math.sqrt(head));
                    total += weight;
                    for (int i = 0; i < head; i++) {
                        mixed[each * head + i] += weight * v[s][key * head + i];
                    }
                }
                for (int i = 0; i < head; i++) {
                    mixed[each * head + i] /= total;
                }
            }
            add(x[t], linear(self + "o_proj", mixed));
        }
    }

    /** How many tokens a token sees in this layer, itself included. */
    private int reach(int layer) {
        boolean windowed = config.get("model_type").asText().equals("mistral")
                ? config.hasNonNull("sliding_window")
                : config.path("use_sliding_window").asBoolean(false)
                        && layer >= config.get("max_window_layers").asInt();
        return windowed ? config.get("sliding_window").asInt() : Integer.MAX_VALUE / 2;
    }

    private double[] perHead(double[] x, String scale) {
        if (!tensors.containsKey(scale)) {
            return x;
        }
        double[] normed = new double[x.length];
        for (int from = 0; from < x.length; from += head) {
            double[] part = new double[head];
            System.arraycopy(x, from, part, 0, head);
            System.arraycopy(norm(part, scale), 0, normed, from, head);
        }
        return normed;
    }

    /** Pair {@code (i, i + head/2)} of each head turned by its angle. */
    private double[] turned(double[] x, int position) {
        double[] result = new double[x.length];
        double factor = attentionFactor();
        for (int from = 0; from < x.length; from += head) {
            for (int i = 0; i < head / 2; i++) {
                double angle = position * inverseFrequency(i);
                double a = x[from + i];
                double b = x[from + i + head / 2];
                result[from + i] = factor * (a * Math.cos(angle) - b * Math.sin(angle));
                result[from + i + head / 2] = factor * (b * Math.cos(angle) + a * Math.sin(angle));
            }
        }
        return result;
    }

    private JsonNode rope() {
        return config.hasNonNull("rope_parameters") ? config.get("rope_parameters") : config.path("rope_scaling");
    }

    private String ropeType() {
        return rope().path("rope_type").asText(rope().path("type").asText("default"));
    }

    private double base() {
        return rope().path("rope_theta").asDouble(config.path("rope_theta").asDouble(10_000));
    }

    private double inverseFrequency(int i) {
        double plain = 1 / Math.pow(base(), 2.0 * i / head);
        double factor = rope().path("factor").asDouble(1);
        return switch (ropeType()) {
            case "linear" -> plain / factor;
            case "llama3" -> llama3(plain, factor);
            case "yarn" -> yarn(i, plain, factor);
            default -> plain;
        };
    }

    /** As Llama 3.1's reference code has it, by wavelengths. */
    private double llama3(double plain, double factor) {
        double context = rope().get("original_max_position_embeddings").asInt();
        double low = rope().get("low_freq_factor").asDouble();
        double high = rope().get("high_freq_factor").asDouble();
        double wavelength = 2 * Math.PI / plain;
        if (wavelength < context / high) {
            return plain;
        }
        if (wavelength > context / low) {
            return plain / factor;
        }
        double smooth = (context / wavelength - low) / (high - low);
        return (1 - smooth) * plain / factor + smooth * plain;
    }

    /** As YaRN's reference code has it, by a ramp over the pairs. */
    private double yarn(int i, double plain, double factor) {
        double low =
                Math.max(0, Math.floor(correctionDim(rope().path("beta_fast").asDouble(32))));
        double high = Math.min(
                head - 1, Math.ceil(correctionDim(rope().path("beta_slow").asDouble(1))));
        double ramp = (i - low) / (low == high ? 0.001 : high - low);
        double extrapolation = 1 - Math.min(1, Math.max(0, ramp));
        return plain / factor * (1 - extrapolation) + plain * extrapolation;
    }

    private double correctionDim(double rotations) {
        double context = rope().get("original_max_position_embeddings").asInt();
        return head * Math.log(context / (rotations * 2 * Math.PI)) / (2 * Math.log(base()));
    }

    private double attentionFactor() {
        if (!ropeType().equals("yarn")) {
            return 1;
        }
        double log = Math.log(rope().get("factor").asDouble());
        if (rope().has("mscale")) {
            return (0.1 * rope().get("mscale").asDouble() * log + 1)
                    / (0.1 * rope().get("mscale_all_dim").asDouble() * log + 1);
        }
        return rope().path("attention_factor").asDouble(0.1 * log + 1);
    }

    private double[] norm(double[] x, String scale) {
        double square = 0;
        for (double value : x) {
            square += value * value;
        }
        double root = Math.sqrt(square / x.length + config.get("rms_norm_eps").asDouble());
        double[] weight = tensors.get(scale);
        double[] result = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            result[i] = weight[i] * x[i] / root;
        }
        return result;
    }

    private double[] linear(String name, double[] x) {
        double[] y = product(tensors.get(name + ".weight"), x);
        if (tensors.containsKey(name + ".bias")) {
            add(y, tensors.get(name + ".bias"));
        }
        return y;
    }

    private static double[] product(double[] matrix, double[] x) {
        double[] y = new double[matrix.length / x.length];
        for (int row = 0; row < y.length; row++) {
            for (int i = 0; i < x.length; i++) {
                y[row] += matrix[row * x.length + i] * x[i];
            }
        }
        return y;
    }

    private static void add(double[] to, double[] what) {
        for (int i = 0; i < to.length; i++) {
            to[i] += what[i];
        }
    }
}
