package dev.millrace.chaos.loss;

/**
 * What a partition has lost.
 *
 * @param topic with the run's prefix
 * @param from first offset that is gone
 * @param to the offset behind the last one that is gone
 */
public record Lost(String topic, int partition, long from, long to) {
    /** Whether a record of this place is gone, or another has taken its place since. */
    public boolean covers(String ofTopic, int ofPartition, long offset) {
        return topic.equals(ofTopic) && partition == ofPartition && offset >= from && offset < to;
    }

    @Override
    public String toString() {
        return topic + "-" + partition + " lost offsets " + from + " to " + (to - 1);
    }
}
