package dev.millrace.infra.broker;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;

class MembershipTest {
    @Test
    void shouldSurviveACommandLine() {
        for (Membership member : Membership.ofNewCluster(List.of(19001, 19002, 19003))) {
            assertThat(Membership.parse(member.text())).isEqualTo(member);
        }
    }

    @Test
    void shouldGiveEveryNodeOfAClusterItsPortAndTheSameVoters() {
        List<Membership> cluster = Membership.ofNewCluster(List.of(19001, 19002, 19003));
        assertThat(cluster).extracting(Membership::nodeId).containsExactly(1, 2, 3);
        assertThat(cluster).extracting(Membership::controllerPort).containsExactly(19001, 19002, 19003);
        assertThat(cluster).allSatisfy(member -> {
            assertThat(member.voters()).isEqualTo(cluster.get(0).voters());
            assertThat(member.clusterId()).isEqualTo(cluster.get(0).clusterId());
            assertThat(member.controllers()).isEqualTo("127.0.0.1:19001,127.0.0.1:19002,127.0.0.1:19003");
        });
    }

    @Test
    void shouldKeepThreeCopiesOnThreeNodesAndAskTwoOfThem() {
        Properties of3 =
                properties(Membership.ofNewCluster(List.of(19001, 19002, 19003)).get(1));
        assertThat(of3)
                .containsEntry("node.id", "2")
                .containsEntry("default.replication.factor", "3")
                .containsEntry("min.insync.replicas", "2")
                .containsEntry("offsets.topic.replication.factor", "3")
                .containsEntry("transaction.state.log.min.isr", "2");
        assertThat(of3.getProperty("listeners")).endsWith("CONTROLLER://127.0.0.1:19002");
        Properties alone = properties(Membership.alone(19001));
        assertThat(alone)
                .containsEntry("default.replication.factor", "1")
                .containsEntry("min.insync.replicas", "1")
                .containsEntry("transaction.state.log.min.isr", "1");
    }

    private static Properties properties(Membership member) {
        return BrokerProperties.of(Path.of("data"), BrokerConfig.defaults(), 9092, member, Map.of());
    }
}
