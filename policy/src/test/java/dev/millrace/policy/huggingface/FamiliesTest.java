package dev.millrace.policy.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Every family's own files, read here and compared with a twin that is written from the published equations. */
class FamiliesTest {
    private static final double WITHIN = 1e-4;
    private static final int[] LENGTHS = {3, 17, 40, 9, 2};

    /** One model in its files. */
    record Model(String name, String config, String dtype, int shards) {
        @Override
        public String toString() {
            return name;
        }
    }

    static final List<Model> MODELS = List.of(
            new Model("Llama 3, as first published", """
                    {"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1,
                     "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 24, "initializer_range": 0.02,
                     "intermediate_size": 40, "max_position_embeddings": 64, "model_type": "llama",
                     "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pretraining_tp": 1,
                     "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false,
                     "torch_dtype": "bfloat16", "transformers_version": "4.40.0.dev0", "use_cache": true, "vocab_size": 31}
                    """, "BF16", 4),
            new Model("Llama 3.2, its frequencies and a tied head", """
                    {"architectures": ["LlamaForCausalLM"], "attention_bias": false, "head_dim": 8, "hidden_act": "silu",
                     "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 256, "mlp_bias": false,
                     "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
                     "pretraining_tp": 1, "rms_norm_eps": 1e-05,
                     "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                       "original_max_position_embeddings": 64, "rope_type": "llama3"},
                     "rope_theta": 100.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "vocab_size": 31}
                    """, "BF16", 1),
            new Model("Llama with biases everywhere and interpolated positions, in newer keys", """
                    {"architectures": ["LlamaForCausalLM"], "attention_bias": true, "dtype": "float16", "hidden_act": "silu",
                     "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 128, "mlp_bias": true,
                     "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "rms_norm_eps": 1e-06,
                     "rope_parameters": {"factor": 2.5, "rope_theta": 1000.0, "rope_type": "linear"},
                     "tie_word_embeddings": false, "vocab_size": 31}
                    """, "F16", 3),
            new Model("SmolLM2", """
                    {"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0,
                     "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 18, "initializer_range": 0.041666666666666664,
                     "intermediate_size": 48, "is_llama_config": true, "max_position_embeddings": 64, "mlp_bias": false,
                     "model_type": "llama", "num_attention_heads": 3, "num_hidden_layers": 3, "num_key_value_heads": 1,
                     "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
                     "rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
                     "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "use_cache": true, "vocab_size": 29}
                    """, "BF16", 1),
            new Model("Qwen2.5 with YaRN", """
                    {"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 32,
                     "intermediate_size": 40, "max_position_embeddings": 128, "max_window_layers": 2, "model_type": "qwen2",
                     "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
                     "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 32, "type": "yarn", "beta_fast": 4},
                     "rope_theta": 100.0, "sliding_window": 131072, "tie_word_embeddings": true,
                     "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 31}
                    """, "BF16", 2),
            new Model("Qwen2 with a window from its second layer on", """
                    {"architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "hidden_size": 24, "intermediate_size": 40,
                     "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
                     "max_position_embeddings": 64, "max_window_layers": 1, "model_type": "qwen2", "num_attention_heads": 4,
                     "num_hidden_layers": 3, "num_key_value_heads": 4, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
                     "sliding_window": 5, "tie_word_embeddings": false, "use_sliding_window": true, "vocab_size": 31}
                    """, "F32", 1),
            new Model("Qwen3, whose heads are wider than its stream", """
                    {"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 10, "hidden_act": "silu",
                     "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 64, "max_window_layers": 2,
                     "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
                     "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
                     "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 31}
                    """, "BF16", 1),
            new Model("Qwen3 with biases and another sharpening of YaRN", """
                    {"architectures": ["Qwen3ForCausalLM"], "attention_bias": true, "head_dim": 8, "hidden_act": "silu",
                     "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 128, "model_type": "qwen3",
                     "num_attention_heads": 6, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
                     "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16,
                       "mscale": 1.5, "mscale_all_dim": 0.5, "beta_slow": 0.5, "beta_fast": 2},
                     "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 31}
                    """, "F32", 2),
            new Model("Mistral with its window", """
                    {"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
                     "head_dim": null, "hidden_act": "silu", "hidden_size": 24, "intermediate_size": 40,
                     "max_position_embeddings": 64, "model_type": "mistral", "num_attention_heads": 4, "num_hidden_layers": 2,
                     "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 6,
                     "tie_word_embeddings": false, "torch_dtype": "float16", "vocab_size": 31}
                    """, "F16", 3),
            new Model("Qwen3 with experts whose weights are normalised", """
                    {"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 8,
                     "hidden_act": "silu", "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 64,
                     "max_window_layers": 2, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 12,
                     "norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 5, "num_experts_per_tok": 2,
                     "num_hidden_layers": 2, "num_key_value_heads": 2, "output_router_logits": false, "rms_norm_eps": 1e-06,
                     "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
                     "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_sliding_window": false, "vocab_size": 31}
                    """, "BF16", 2),
            new Model("Qwen3 with experts whose weights are not", """
                    {"architectures": ["Qwen3MoeForCausalLM"], "hidden_act": "silu", "hidden_size": 24, "intermediate_size": 40,
                     "max_position_embeddings": 64, "model_type": "qwen3_moe", "moe_intermediate_size": 20,
                     "norm_topk_prob": false, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 3,
                     "num_hidden_layers": 1, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
                     "tie_word_embeddings": true, "vocab_size": 31}
                    """, "F32", 1));

    @TempDir
    Path directory;

    @ParameterizedTest
    @FieldSource("MODELS")
    void shouldScoreWhatTheEquationsSay(Model model) throws IOException {
        FamilyCheckpoint checkpoint = written(model);
        Weights weights = new CheckpointDirectory(directory).load();
        int[][] tokens = tokens(weights.shape());
        FamilyTwin twin = new FamilyTwin(checkpoint);
        SequenceBatch batch = batch(tokens);
        try (ScoringSession session = new ScoringSession(Engine.cpu(), weights.shape(), 64)) {
            TokenScores scores = session.score(weights, batch, ones());
            for (int s = 0; s < tokens.length; s++) {
                double[][] expected = twin.logProbs(tokens[s]);
                for (int t = 1; t < tokens[s].length; t++) {
                    assertThat((double) scores.logProbs()[batch.offset(s) + t - 1])
                            .as("sequence %d, token %d", s, t)
                            .isCloseTo(expected[t - 1][tokens[s][t]], within(WITHIN));
                }
            }
        }
    }

    @ParameterizedTest
    @FieldSource("MODELS")
    void shouldDecodeWithItsCacheWhatTheFullPassScores(Model model) throws IOException {
        FamilyCheckpoint checkpoint = written(model);
        Weights weights = new CheckpointDirectory(directory).load();
        int[][] tokens = tokens(weights.shape());
        FamilyTwin twin = new FamilyTwin(checkpoint);
        SequenceBatch batch = batch(tokens);
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), weights.shape(), tokens.length, 40, 5);
                ScoringSession scoring = new ScoringSession(Engine.cpu(), weights.shape(), 64)) {
            TokenScores scores = scoring.score(weights, batch, ones());
            float[][] logProbs = forced(decode, weights, tokens);
            for (int s = 0; s < tokens.length; s++) {
                double[][] expected = twin.logProbs(tokens[s]);
                for (int t = 1; t < tokens[s].length; t++) {
                    assertThat((double) logProbs[s][t])
                            .as("sequence %d, token %d", s, t)
                            .isCloseTo(expected[t - 1][tokens[s][t]], within(WITHIN));
                    assertThat(logProbs[s][t])
                            .as("sequence %d, token %d", s, t)
                            .isCloseTo(scores.logProbs()[batch.offset(s) + t - 1], rounded(logProbs[s][t]));
                }
            }
        }
    }

    /** How far apart two orders of the same sums may round, which grows with the number. */
    private static Offset<Float> rounded(float logProb) {
        return within(1e-5f * (1 + Math.abs(logProb)));
    }

    /** Pieces that end before, at and after the edges of windows and padding, with and without a past. */
    @ParameterizedTest
    @FieldSource("MODELS")
    void shouldGoOnFromTokensTakenInAtOnceAsFromTokensForcedOneByOne(Model model) throws IOException {
        written(model);
        Weights weights = new CheckpointDirectory(directory).load();
        int[][] tokens = tokens(weights.shape());
        SplittableRandom random = new SplittableRandom(4);
        try (DecodeSession one = new DecodeSession(Engine.cpu(), weights.shape(), tokens.length, 40, 5);
                DecodeSession many = new DecodeSession(Engine.cpu(), weights.shape(), tokens.length, 40, 5)) {
            float[][] expected = forced(one, weights, tokens);
            for (int round = 0; round < 4; round++) {
                int[] cut = new int[tokens.length];
                for (int s = 0; s < tokens.length; s++) {
                    cut[s] = random.nextInt(1, tokens[s].length);
                    many.reset(s, tokens[s][0]);
                }
                takeIn(many, weights, tokens, cut, random.nextInt(1, 20));
                float[][] logProbs = forcedFrom(many, weights, tokens, cut);
                for (int s = 0; s < tokens.length; s++) {
                    for (int t = cut[s]; t < tokens[s].length; t++) {
                        assertThat(logProbs[s][t])
                                .as("sequence %d, %d taken in, token %d", s, cut[s], t)
                                .isCloseTo(expected[s][t], rounded(expected[s][t]));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @FieldSource("MODELS")
    void shouldDifferentiateWhatTheEquationsSay(Model model) throws IOException {
        FamilyCheckpoint checkpoint = written(model);
        Weights weights = new CheckpointDirectory(directory).load();
        DecoderShape shape = weights.shape();
        int[][] tokens = Arrays.copyOf(tokens(shape), 2);
        SequenceBatch batch = batch(tokens);
        SplittableRandom random = new SplittableRandom(8);
        float[] coefficients = new float[batch.scoredCount()];
        for (int i = 0; i < coefficients.length; i++) {
            coefficients[i] = (float) random.nextDouble(-1, 1);
        }
        Gradients gradients = new Gradients(shape);
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 64)) {
            session.accumulate(
                    weights, batch, new float[] {1, 1}, coefficients, new float[coefficients.length], gradients);
        }
        FamilyTwin twin = new FamilyTwin(checkpoint);
        for (TensorSpec spec : shape.tensors()) {
            double[] tensor = checkpoint.tensors().get(spec.name());
            double[] before = tensor.clone();
            double[] direction = random.doubles(tensor.length, -1, 1).toArray();
            float[] gradient = gradients.values(spec.name());
            double claimed = 0;
            double square = 0;
            for (int i = 0; i < tensor.length; i++) {
                claimed += gradient[i] * direction[i];
                square += gradient[i] * gradient[i];
            }
            double step = 1e-5;
            double difference = 0;
            for (int sign = -1; sign <= 1; sign += 2) {
                for (int i = 0; i < tensor.length; i++) {
                    tensor[i] = before[i] + sign * step * direction[i];
                }
                difference += sign * objective(twin, batch, tokens, coefficients);
            }
            System.arraycopy(before, 0, tensor, 0, tensor.length);
            assertThat(Math.sqrt(square)).as(spec.name()).isGreaterThan(1e-5);
            assertThat(claimed)
                    .as(spec.name())
                    .isCloseTo(difference / (2 * step), within(1e-4 * (1 + Math.sqrt(square))));
        }
    }

    /** A key that is read and has no effect would pass the comparison with a twin that forgets it too. */
    @Test
    void shouldGiveOtherLogProbsWhereAKeyIsAnother() throws IOException {
        requireDifference(1, "\"factor\": 32.0", "\"factor\": 2.0");
        requireDifference(2, "\"factor\": 2.5", "\"factor\": 1.0");
        requireDifference(4, "\"beta_fast\": 4", "\"beta_fast\": 1.5");
        requireDifference(4, "\"type\": \"yarn\", \"beta_fast\": 4", "\"type\": \"linear\"");
        requireDifference(5, "\"sliding_window\": 5", "\"sliding_window\": 8");
        requireDifference(7, "\"mscale\": 1.5", "\"mscale\": 0.5");
        requireDifference(8, "\"sliding_window\": 6", "\"sliding_window\": null");
        requireDifference(9, "\"norm_topk_prob\": true", "\"norm_topk_prob\": false");
        requireDifference(9, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 3");
    }

    private void requireDifference(int model, String key, String other) throws IOException {
        Model one = MODELS.get(model);
        assertThat(one.config()).contains(key);
        double[] first = logProbs(one);
        double[] second = logProbs(new Model(one.name(), one.config().replace(key, other), one.dtype(), one.shards()));
        double apart = 0;
        for (int i = 0; i < first.length; i++) {
            apart = Math.max(apart, Math.abs(first[i] - second[i]));
        }
        assertThat(apart).as("%s: %s instead of %s", one.name(), other, key).isGreaterThan(100 * WITHIN);
    }

    private double[] logProbs(Model model) throws IOException {
        Path own = Files.createTempDirectory(directory, "model");
        written(model, own);
        Weights weights = new CheckpointDirectory(own).load();
        try (ScoringSession session = new ScoringSession(Engine.cpu(), weights.shape(), 64)) {
            float[] scores = session.score(weights, batch(tokens(weights.shape())), ones())
                    .logProbs();
            double[] wide = new double[scores.length];
            for (int i = 0; i < wide.length; i++) {
                wide[i] = scores[i];
            }
            return wide;
        }
    }

    private FamilyCheckpoint written(Model model) throws IOException {
        return written(model, directory);
    }

    static FamilyCheckpoint written(Model model, Path into) throws IOException {
        FamilyCheckpoint checkpoint = FamilyCheckpoint.random(model.config(), model.dtype(), model.shards(), 7);
        checkpoint.write(into);
        return checkpoint;
    }

    static int[][] tokens(DecoderShape shape) {
        SplittableRandom random = new SplittableRandom(3);
        return Arrays.stream(LENGTHS)
                .mapToObj(length -> random.ints(length, 0, shape.vocabSize()).toArray())
                .toArray(int[][]::new);
    }

    static SequenceBatch batch(int[][] tokens) {
        int[] firstScored = new int[tokens.length];
        Arrays.fill(firstScored, 1);
        return new SequenceBatch(tokens, firstScored);
    }

    static float[] ones() {
        float[] ones = new float[LENGTHS.length];
        Arrays.fill(ones, 1f);
        return ones;
    }

    /** Prefills the tokens before each cut, {@code piece} tokens of each sequence per call. */
    private static void takeIn(DecodeSession session, Weights weights, int[][] tokens, int[] cut, int piece) {
        for (int from = 1; from < 40; from += piece) {
            List<KnownTokens> known = new ArrayList<>();
            for (int s = 0; s < tokens.length; s++) {
                int to = Math.min(cut[s], from + piece);
                if (from < to) {
                    known.add(new KnownTokens(s, Arrays.copyOfRange(tokens[s], from, to)));
                }
            }
            session.prefill(weights, known);
        }
    }

    private static float[][] forced(DecodeSession session, Weights weights, int[][] tokens) {
        int[] first = new int[tokens.length];
        Arrays.fill(first, 1);
        for (int s = 0; s < tokens.length; s++) {
            session.reset(s, tokens[s][0]);
        }
        return forcedFrom(session, weights, tokens, first);
    }

    private static float[][] forcedFrom(DecodeSession session, Weights weights, int[][] tokens, int[] from) {
        float[][] logProbs = new float[tokens.length][];
        for (int s = 0; s < tokens.length; s++) {
            logProbs[s] = new float[tokens[s].length];
        }
        DecodeInput in = new DecodeInput(tokens.length, session.tokensPerCall());
        for (int at = 0; at < 40; at += session.tokensPerCall()) {
            in.clear();
            boolean any = false;
            for (int s = 0; s < tokens.length; s++) {
                int steps = Math.min(session.tokensPerCall(), tokens[s].length - from[s] - at);
                if (steps > 0) {
                    any = true;
                    in.activate(s, steps, Sampling.of(1));
                    for (int step = 0; step < steps; step++) {
                        in.force(step, s, tokens[s][from[s] + at + step]);
                    }
                }
            }
            if (!any) {
                break;
            }
            DecodeSteps done = session.advance(weights, in);
            for (int s = 0; s < tokens.length; s++) {
                for (int step = 0; step < done.steps(s); step++) {
                    logProbs[s][from[s] + at + step] = done.logProb(step, s);
                }
            }
        }
        return logProbs;
    }

    private static double objective(FamilyTwin twin, SequenceBatch batch, int[][] tokens, float[] coefficients) {
        double sum = 0;
        for (int s = 0; s < tokens.length; s++) {
            double[][] logProbs = twin.logProbs(tokens[s]);
            for (int t = 1; t < tokens[s].length; t++) {
                sum += coefficients[batch.offset(s) + t - 1] * logProbs[t - 1][tokens[s][t]];
            }
        }
        return sum;
    }
}
