package dev.millrace.corrections.algorithm;

/** Where the values of {@link dev.millrace.corrections.stage.StageInput#VALUES} come from. */
public sealed interface CriticConfig {

    /** From a partner's records, where a stage reads values at all. */
    record Off() implements CriticConfig {}

    /**
     * From a head on the policy, trained with it: {@code loss + coefficient · value loss}. Its gradient flows into the
     * layers that both share.
     *
     * @param coefficient weight of the value loss
     * @param clip largest change of a value within a step that lowers its loss; 0 for no bound
     */
    record ValueHead(double coefficient, double clip) implements CriticConfig {
        public ValueHead {
            if (!(coefficient > 0 && coefficient < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException(
                        "coefficient must be above 0 and finite, or the head would stay at 0: " + coefficient);
            }
            if (!(clip >= 0 && clip < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("clip must be at least 0 and finite: " + clip);
            }
        }

        /** Half of the mean squared error at half weight, not clipped. */
        public static ValueHead defaults() {
            return new ValueHead(0.5, 0);
        }
    }
}
