package dev.millrace.chaos.loss;

import dev.millrace.chaos.ChaosException;
import dev.millrace.log.LogConnection;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/**
 * A partition that continues with one copy alone, which is then lost, so that a copy that is behind becomes the leader: what was
 * acknowledged meanwhile is gone.
 *
 * <p>Of three brokers, two keep the partition. One of them is stopped, so that the leader is alone in sync. Then the leader is
 * killed, and the stopped one started and elected. Controllers keep a majority throughout. Owned by one thread.
 */
public final class UncleanElection implements AutoCloseable {
    private static final long LIMIT_S = 40;
    private static final long LOOK_EVERY_MS = 300;

    private final Admin admin;
    private final TopicPartition partition;
    private final List<Integer> all;
    private final int leader;
    private final int follower;

    private UncleanElection(Admin admin, TopicPartition partition, List<Integer> all, int leader, int follower) {
        this.admin = admin;
        this.partition = partition;
        this.all = all;
        this.leader = leader;
        this.follower = follower;
    }

    /** Prepares a partition of a topic that has three copies. */
    public static UncleanElection of(LogConnection connection, String topic, int number) throws InterruptedException {
        Admin admin = Admin.create(connection.admin());
        try {
            TopicPartition partition = new TopicPartition(topic, number);
            TopicPartitionInfo info = describe(admin, partition);
            List<Integer> all = ids(info.replicas());
            Node leads = info.leader();
            if (all.size() < 2 || leads == null) {
                throw new ChaosException(partition + " has no leader and a follower: " + info);
            }
            int follower =
                    all.stream().filter(id -> id != leads.id()).findFirst().orElseThrow();
            UncleanElection election = new UncleanElection(admin, partition, all, leads.id(), follower);
            election.configure("true", "1");
            election.assign(List.of(leads.id(), follower));
            election.await(
                    "two copies in sync",
                    now -> now.replicas().size() == 2 && now.isr().size() == 2);
            return election;
        } catch (ExecutionException | TimeoutException e) {
            admin.close();
            throw new ChaosException("an unclean election of " + topic + " cannot be prepared: " + e.getMessage(), e);
        } catch (RuntimeException e) {
            admin.close();
            throw e;
        }
    }

    /** How many partitions a topic has. */
    public static int partitions(LogConnection connection, String topic) throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin())) {
            return described(admin, topic).partitions().size();
        } catch (ExecutionException | TimeoutException e) {
            throw new ChaosException(topic + " cannot be described: " + e.getMessage(), e);
        }
    }

    /** The broker to be killed, from 1. */
    public int leader() {
        return leader;
    }

    /** The broker that is to be stopped first and elected last, from 1. */
    public int follower() {
        return follower;
    }

    /** Waits until the leader, whose follower is stopped, continues alone. */
    public void awaitAlone() throws InterruptedException {
        await("the leader alone in sync", now -> ids(now.isr()).equals(List.of(leader)));
    }

    /** The offset behind the last record. */
    public long end() throws InterruptedException {
        try {
            return admin.listOffsets(Map.of(partition, OffsetSpec.latest()))
                    .partitionResult(partition)
                    .get(LIMIT_S, TimeUnit.SECONDS)
                    .offset();
        } catch (ExecutionException | TimeoutException e) {
            throw new ChaosException("the end of " + partition + " is not known: " + e.getMessage(), e);
        }
    }

    /** Elects the follower, which has been started again while the leader is gone. */
    public Optional<Lost> elect(long endBefore) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        while (!isLed(follower)) {
            if (System.nanoTime() > deadline) {
                throw new ChaosException(
                        "broker " + follower + " was not elected for " + partition + " within " + LIMIT_S + " s");
            }
            try {
                admin.electLeaders(ElectionType.UNCLEAN, Set.of(partition))
                        .all()
                        .get(LIMIT_S, TimeUnit.SECONDS);
            } catch (ExecutionException | TimeoutException notYet) {
                TimeUnit.MILLISECONDS.sleep(LOOK_EVERY_MS);
            }
        }
        long end = end();
        return end < endBefore
                ? Optional.of(new Lost(partition.topic(), partition.partition(), end, endBefore))
                : Optional.empty();
    }

    private boolean isLed(int by) throws InterruptedException {
        try {
            Node leads = describe(admin, partition).leader();
            return leads != null && leads.id() == by;
        } catch (ExecutionException | TimeoutException e) {
            return false;
        }
    }

    private static List<Integer> ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }

    private static TopicPartitionInfo describe(Admin admin, TopicPartition partition)
            throws InterruptedException, ExecutionException, TimeoutException {
        return described(admin, partition.topic()).partitions().get(partition.partition());
    }

    private static TopicDescription described(Admin admin, String topic)
            throws InterruptedException, ExecutionException, TimeoutException {
        return Objects.requireNonNull(
                admin.describeTopics(List.of(topic))
                        .allTopicNames()
                        .get(LIMIT_S, TimeUnit.SECONDS)
                        .get(topic),
                topic);
    }

    private void await(String what, Predicate<TopicPartitionInfo> condition) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        while (true) {
            try {
                TopicPartitionInfo now = describe(admin, partition);
                if (condition.test(now)) {
                    return;
                }
                if (System.nanoTime() > deadline) {
                    throw new ChaosException(
                            "waited " + LIMIT_S + " s without success for " + what + " of " + partition + ": " + now);
                }
            } catch (ExecutionException | TimeoutException e) {
                if (System.nanoTime() > deadline) {
                    throw new ChaosException(partition + " cannot be described: " + e.getMessage(), e);
                }
            }
            TimeUnit.MILLISECONDS.sleep(LOOK_EVERY_MS);
        }
    }

    private void configure(String unclean, String inSync)
            throws InterruptedException, ExecutionException, TimeoutException {
        admin.incrementalAlterConfigs(Map.of(
                        new ConfigResource(ConfigResource.Type.TOPIC, partition.topic()),
                        List.of(
                                new AlterConfigOp(
                                        new ConfigEntry("unclean.leader.election.enable", unclean),
                                        AlterConfigOp.OpType.SET),
                                new AlterConfigOp(
                                        new ConfigEntry("min.insync.replicas", inSync), AlterConfigOp.OpType.SET))))
                .all()
                .get(LIMIT_S, TimeUnit.SECONDS);
    }

    private void assign(List<Integer> replicas) throws InterruptedException, ExecutionException, TimeoutException {
        admin.alterPartitionReassignments(Map.of(partition, Optional.of(new NewPartitionReassignment(replicas))))
                .all()
                .get(LIMIT_S, TimeUnit.SECONDS);
    }

    /** The topic is as it was: all of its copies, and no unclean election; every broker is there again. */
    public void restore() throws InterruptedException {
        try {
            assign(all);
            await(
                    "all copies in sync",
                    now -> now.replicas().size() == all.size() && now.isr().size() == all.size());
            configure("false", "2");
        } catch (ExecutionException | TimeoutException e) {
            throw new ChaosException(partition + " cannot be restored: " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        admin.close();
    }
}
