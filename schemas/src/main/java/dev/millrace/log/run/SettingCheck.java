package dev.millrace.log.run;

import java.util.Map;
import org.apache.kafka.common.config.TopicConfig;

/** When a setting of an existing topic does as well as the one that a run would have made it with. */
final class SettingCheck {
    /** Settings that keep records: more is as good, -1 is without end. */
    private static final Map<String, String> KEYS = Map.of(
            TopicConfig.RETENTION_MS_CONFIG, "must be at least",
            TopicConfig.RETENTION_BYTES_CONFIG, "must be at least",
            TopicConfig.MAX_MESSAGE_BYTES_CONFIG, "must be at least",
            TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, "must be at least",
            TopicConfig.CLEANUP_POLICY_CONFIG, "must be");

    private SettingCheck() {}

    /** Refuses an existing value that keeps less, takes less or cleans otherwise than the run needs. */
    static void require(String topic, String key, String needed, String existing) {
        String bound = KEYS.get(key);
        if (bound == null || existing.equals(needed)) {
            return;
        }
        boolean fits = !key.equals(TopicConfig.CLEANUP_POLICY_CONFIG) && asBound(existing) >= asBound(needed);
        if (!fits) {
            throw new LogSetupException("topic " + topic + " has " + key + "=" + existing + ", it " + bound + " "
                    + needed + "; alter the topic, change the setting under 'topics' in the configuration, "
                    + "or choose another topic prefix");
        }
    }

    private static long asBound(String value) {
        long number = Long.parseLong(value);
        return number == -1 ? Long.MAX_VALUE : number;
    }
}
