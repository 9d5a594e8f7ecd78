package dev.millrace.log.run;

import java.util.Map;

/**
 * Where a run's log is: the cluster and its topics, by the identities that the cluster gave them. A topic that was deleted and
 * made again has the same name and another id.
 *
 * @param clusterId as the cluster names itself; empty if nobody recorded it
 * @param topicIds topic name to topic id; empty if nobody recorded them
 */
public record LogPlace(String clusterId, Map<String, String> topicIds) {
    public LogPlace {
        topicIds = Map.copyOf(topicIds);
    }
}
