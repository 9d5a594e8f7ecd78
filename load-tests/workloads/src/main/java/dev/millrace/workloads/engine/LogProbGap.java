package dev.millrace.workloads.engine;

/**
 * How far two log-probs of the same tokens are apart, in nats.
 *
 * @param mean of the absolute differences
 * @param most the largest of them
 */
public record LogProbGap(double mean, double most) {

    /** Of as many log-probs on either side, at least one. */
    static LogProbGap between(float[] one, float[] other) {
        if (one.length != other.length || one.length == 0) {
            throw new IllegalArgumentException(
                    "as many log-probs on either side, at least one: " + one.length + " and " + other.length);
        }
        double sum = 0;
        double most = 0;
        for (int i = 0; i < one.length; i++) {
            double difference = Math.abs((double) one[i] - other[i]);
            sum += difference;
            most = Math.max(most, difference);
        }
        return new LogProbGap(sum / one.length, most);
    }
}
