package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Tests the further guarantees that callers of prefill rely on. The test of every family checks that prefilled tokens
 * agree with forced ones.
 */
class PrefillTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldLeaveTheSameBitsInAnyCompany(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        int[][] tokens = RaggedBatches.tokens(shape, 2, new int[] {9, 2, 14, 5, 21, 9, 14, 20, 3});
        try (DecodeSession together = new DecodeSession(Engine.cpu(), shape, tokens.length, 40, 4);
                DecodeSession alone = new DecodeSession(Engine.cpu(), shape, tokens.length, 40, 4)) {
            takeIn(together, weights, tokens, 6, 0, tokens.length);
            for (int s = tokens.length - 1; s >= 0; s--) {
                takeIn(alone, weights, tokens, 6, s, s + 1);
            }
            assertThat(sampled(together, weights)).isEqualTo(sampled(alone, weights));
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldGoOnFromACopyAsFromWhatWasCopied(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        int[] prompt = RaggedBatches.tokens(shape, 2, new int[] {17})[0];
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, 3, 40, 4)) {
            takeIn(session, weights, new int[][] {prompt}, 8, 0, 1);
            session.copy(0, 2, prompt.length, prompt[prompt.length - 1]);
            session.reset(1, prompt[0]);
            session.prefill(weights, List.of(new KnownTokens(1, Arrays.copyOfRange(prompt, 1, 3))));
            DecodeInput in = new DecodeInput(3, 4);
            for (int slot = 0; slot < 3; slot++) {
                in.activate(slot, 4, Sampling.of(1));
                for (int step = 0; step < 4; step++) {
                    in.sample(step, slot, 0.1f + 0.2f * step);
                }
            }
            DecodeSteps done = session.advance(weights, in);
            boolean other = false;
            for (int step = 0; step < 4; step++) {
                assertThat(done.token(step, 2)).isEqualTo(done.token(step, 0));
                assertThat(done.logProb(step, 2)).isEqualTo(done.logProb(step, 0));
                other |= done.logProb(step, 1) != done.logProb(step, 0);
            }
            assertThat(other).as("a shorter prompt").isTrue();
        }
    }

    @Test
    void shouldRefuseWhatDoesNotFitAndTakeNothingInThen() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, 2, 8, 2)) {
            session.reset(0, 1);
            assertThatThrownBy(() -> session.prefill(weights, List.of(new KnownTokens(1, new int[] {1}))))
                    .hasMessage("slot 1 has no sequence; reset it with its first token");
            assertThatThrownBy(() -> session.prefill(weights, List.of(new KnownTokens(0, new int[8]))))
                    .hasMessage("slot 0 holds 1 tokens and cannot take 8 more: capacityTokens=8");
            assertThatThrownBy(() -> session.prefill(weights, List.of(new KnownTokens(0, new int[] {3, 11}))))
                    .hasMessage("token 11 for slot 0 is outside the vocabulary of 11");
            assertThatThrownBy(() -> session.prefill(
                            weights, List.of(new KnownTokens(0, new int[] {3}), new KnownTokens(0, new int[] {4}))))
                    .hasMessage("slot 0 is to take in 1 tokens, and others in the same call");
            assertThatThrownBy(() -> session.prefill(weights, List.of(new KnownTokens(0, new int[0]))))
                    .hasMessage("slot 0 is to take in 0 tokens, and at least 1 is needed");
            assertThatThrownBy(() -> session.copy(0, 1, 2, 3)).hasMessage("slot 0 holds 1 tokens and not 2");
            assertThat(session.position(0)).isEqualTo(1);
            session.prefill(weights, List.of(new KnownTokens(0, new int[7])));
            assertThat(session.position(0)).isEqualTo(8);
        }
    }

    /** Prefills some of the sequences, {@code piece} tokens of each per call. */
    private static void takeIn(DecodeSession session, Weights weights, int[][] tokens, int piece, int first, int end) {
        for (int s = first; s < end; s++) {
            session.reset(s, tokens[s][0]);
        }
        for (int from = 1; from < 40; from += piece) {
            List<KnownTokens> known = new ArrayList<>();
            for (int s = first; s < end; s++) {
                int to = Math.min(tokens[s].length, from + piece);
                if (from < to) {
                    known.add(new KnownTokens(s, Arrays.copyOfRange(tokens[s], from, to)));
                }
            }
            session.prefill(weights, known);
        }
    }

    private static float[] sampled(DecodeSession session, Weights weights) {
        SplittableRandom random = new SplittableRandom(6);
        DecodeInput in = new DecodeInput(session.slots(), 4);
        for (int slot = 0; slot < session.slots(); slot++) {
            in.activate(slot, 4, Sampling.of(1));
            for (int step = 0; step < 4; step++) {
                in.sample(step, slot, random.nextInt(1 << 24) * 0x1p-24f);
            }
        }
        DecodeSteps done = session.advance(weights, in);
        float[] found = new float[8 * session.slots()];
        for (int slot = 0; slot < session.slots(); slot++) {
            for (int step = 0; step < 4; step++) {
                found[8 * slot + step] = done.token(step, slot);
                found[8 * slot + 4 + step] = done.logProb(step, slot);
            }
        }
        return found;
    }
}
