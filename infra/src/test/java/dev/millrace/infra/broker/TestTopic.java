package dev.millrace.infra.broker;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;

/** Makes a topic of one partition. */
final class TestTopic {
    private TestTopic() {}

    /** Returns when records can be sent to it: a broker knows a new topic only some time after it is made. */
    static void create(Admin admin, String name) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get(90, TimeUnit.SECONDS);
        while (true) {
            try {
                admin.listOffsets(Map.of(new TopicPartition(name, 0), OffsetSpec.latest()))
                        .all()
                        .get(90, TimeUnit.SECONDS);
                return;
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof RetriableException)) {
                    throw e;
                }
            }
        }
    }
}
