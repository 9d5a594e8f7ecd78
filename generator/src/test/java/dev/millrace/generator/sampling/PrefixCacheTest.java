package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.HeldPrefix;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.weights.Weights;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class PrefixCacheTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 32, 1, 4, 2, 8, 48, 64, 100, 1e-6, false, false);
    private static final long TEN_TOKENS = 100;

    private static HeldPrefix held;

    private final PrefixCache cache = new PrefixCache(2 * TEN_TOKENS);

    @BeforeAll
    static void takeAPrefix() {
        try (DecodeSession session = new DecodeSession(Engine.cpu(), SHAPE, 1, 16, 1)) {
            session.reset(0, 1);
            session.prefill(Weights.random(SHAPE, 1), List.of(new KnownTokens(0, new int[12])));
            held = session.take(0, 12);
        }
    }

    /** Ten tokens, which begin as the others of another end do, and further ones. */
    private static int[] tokens(int end, int... further) {
        return IntStream.concat(IntStream.concat(IntStream.range(0, 9), IntStream.of(end)), IntStream.of(further))
                .toArray();
    }

    private void keep(int[] tokens, long version) {
        cache.keep(tokens, version, TEN_TOKENS, () -> held);
    }

    private int found(int[] prompt, long version) {
        return cache.find(prompt, version).map(PrefixCache.Found::tokens).orElse(0);
    }

    @Test
    void shouldFindTheLongestBeginningOfAPromptButForItsLastToken() {
        keep(tokens(1), 0);
        keep(tokens(2), 0);
        assertThat(found(tokens(2, 7, 7), 0)).isEqualTo(10);
        assertThat(found(tokens(3, 7, 7), 0)).as("as both begin").isEqualTo(9);
        assertThat(found(tokens(1), 0)).as("all but the token that is fed").isEqualTo(9);
        assertThat(found(new int[] {0, 1, 2, 9, 9, 9, 9, 9, 9, 9}, 0))
                .as("too little")
                .isZero();
        assertThat(cache.find(tokens(2, 7), 0).map(PrefixCache.Found::held)).isEqualTo(Optional.of(held));
    }

    @Test
    void shouldHoldNoMoreThanItMayAndGiveUpWhatWasNotUsedForTheLongestTime() {
        keep(tokens(1), 0);
        keep(tokens(2), 0);
        assertThat(found(tokens(1, 7), 0)).isEqualTo(10);
        keep(tokens(3), 0);
        assertThat(cache.bytes()).isEqualTo(2 * TEN_TOKENS);
        assertThat(found(tokens(1, 7), 0)).isEqualTo(10);
        assertThat(found(tokens(2, 7), 0)).as("was used before the others").isEqualTo(9);
        cache.keep(tokens(4), 0, 2 * TEN_TOKENS + 1, () -> {
            throw new IllegalStateException("it is too large to be held");
        });
        assertThat(cache.bytes()).isEqualTo(2 * TEN_TOKENS);
    }

    @Test
    void shouldHoldAConversationOnce() {
        keep(tokens(1), 0);
        keep(tokens(1, 5, 5), 0);
        assertThat(cache.bytes()).as("the shorter one is in it").isEqualTo(TEN_TOKENS);
        cache.keep(tokens(1, 5), 0, TEN_TOKENS, () -> {
            throw new IllegalStateException("it is there");
        });
        assertThat(found(tokens(1, 5, 5, 6), 0)).isEqualTo(12);
    }

    @Test
    void shouldHoldNothingOfAnotherVersionThanTheNewest() {
        keep(tokens(1), 0);
        assertThat(found(tokens(1, 7), 1)).isZero();
        keep(tokens(2), 1);
        assertThat(found(tokens(1, 7), 0)).isZero();
        assertThat(found(tokens(2, 7), 1)).isEqualTo(10);
        keep(tokens(3), 0);
        assertThat(cache.bytes())
                .as("what finished late under an older one is not held")
                .isEqualTo(TEN_TOKENS);
        cache.forget();
        assertThat(found(tokens(2, 7), 1)).isZero();
        assertThat(cache.bytes()).isZero();
    }
}
