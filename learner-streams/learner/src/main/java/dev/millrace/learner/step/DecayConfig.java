package dev.millrace.learner.step;

/** What the learning rate does after warm-up. */
public sealed interface DecayConfig {

    record Constant() implements DecayConfig {}

    /**
     * Falls in a straight line to 0.
     *
     * @param steps step at which the rate reaches 0
     */
    record Linear(long steps) implements DecayConfig {
        public static Linear defaults() {
            return new Linear(500);
        }
    }

    /**
     * Falls as half a cosine to 0.
     *
     * @param steps step at which the rate reaches 0
     */
    record Cosine(long steps) implements DecayConfig {
        public static Cosine defaults() {
            return new Cosine(500);
        }
    }
}
