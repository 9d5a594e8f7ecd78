package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.gateway.Session.SessionId;
import dev.millrace.generator.sampling.AcceptedPrompt;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SessionTableTest {
    private final SessionTable table = new SessionTable(3);

    private Session open(String group, int index) {
        ReleasedSample sample = table.claim(group, index, 0);
        Session session = new Session(SessionId.of(2, sample.prompt().offset(), sample.index()), sample, null, 1);
        table.opened(session);
        return session;
    }

    @Test
    void shouldGiveEachSampleOnceAndTheOldestFirst() {
        table.add(Played.prompt("g", 5, 2), index -> false, index -> false);
        table.add(Played.prompt("h", 6, 1), index -> false, index -> false);
        assertThat(open(null, -1).sample().name()).isEqualTo("g/0");
        assertThat(open("h", 0).sample().name()).isEqualTo("h/0");
        assertThatThrownBy(() -> table.claim("h", 0, 0)).hasMessage("the sample h/0 is played by another session");
        assertThat(open(null, -1).sample().name()).isEqualTo("g/1");
        assertThatThrownBy(() -> table.claim(null, -1, 0))
                .isInstanceOfSatisfying(
                        RefusedCallException.class,
                        refusal -> assertThat(refusal.status()).isEqualTo(429))
                .hasMessageContaining("there are 3 sessions open");
    }

    @Test
    void shouldSayThatNothingIsReleased() {
        assertThatThrownBy(() -> table.claim(null, -1, 0))
                .isInstanceOfSatisfying(RefusedCallException.class, refusal -> {
                    assertThat(refusal.status()).isEqualTo(503);
                    assertThat(refusal.code()).isEqualTo("no_sample");
                })
                .hasMessageContaining("admission releases samples up to admission.eta only");
    }

    @Test
    void shouldNotGiveAwayASampleWhoseSessionIsStillToBeRestored() {
        table.add(Played.prompt("g", 5, 2), index -> false, index -> index == 0);
        assertThat(open(null, -1).sample().name()).isEqualTo("g/1");
        assertThat(table.freeSamples()).isZero();
    }

    @Test
    void shouldFinishEveryRequestThatAskedForASample() {
        AcceptedPrompt first = Played.prompt("g", 5, 1);
        AcceptedPrompt again = Played.prompt("g", 8, 1);
        table.add(first, index -> false, index -> false);
        Session session = open("g", 0);
        assertThat(table.add(again, index -> false, index -> false)).isEmpty();
        assertThat(session.sample().askedBy()).containsExactly(first, again);
        table.ended(session, true);
        assertThat(table.add(Played.prompt("g", 9, 1), index -> true, index -> false))
                .as("finished before")
                .hasSize(1);
        assertThat(table.freeSamples()).isZero();
    }

    @Test
    void shouldFreeTheSampleOfASessionWithoutATurn() {
        table.add(Played.prompt("g", 5, 1), index -> false, index -> false);
        Session session = open("g", 0);
        table.ended(session, false);
        assertThat(table.freeSamples()).isEqualTo(1);
        assertThat(table.session(session.id().text())).isSameAs(session);
        assertThat(open("g", 0).id()).isNotEqualTo(session.id());
    }

    @Test
    void shouldGiveFurtherBranchesOtherSamplesOfTheirGroupOrNone() {
        table.add(Played.prompt("h", 4, 1), index -> false, index -> false);
        table.add(Played.prompt("g", 5, 3), index -> false, index -> false);
        Session session = open("g", 1);
        assertThatThrownBy(() -> table.claimBeside(session, 3))
                .isInstanceOfSatisfying(
                        RefusedCallException.class,
                        refusal -> assertThat(refusal.status()).isEqualTo(422))
                .hasMessageStartingWith("of the group g 2 samples are free, and 3 further branches need one each");
        assertThat(table.claimBeside(session, 2))
                .extracting(ReleasedSample::name)
                .containsExactly("g/0", "g/2");
        assertThat(table.freeSamples()).as("the other group's").isEqualTo(1);
        assertThat(table.claimBeside(session, 0)).isEmpty();
    }

    @Test
    void shouldNotFreeASampleThatAnotherSessionPlaysToo() {
        table.add(Played.prompt("g", 5, 1), index -> false, index -> index == 0);
        ReleasedSample sample = table.unfinished("g/0");
        Session answered = new Session(SessionId.of(2, 5, 0), sample, null, 1);
        Session notAnswered = new Session(SessionId.of(2, 5, 0), sample, null, 1);
        table.restore(answered);
        table.restore(notAnswered);
        table.ended(notAnswered, false);
        assertThat(table.freeSamples()).isZero();
        assertThat(table.isHere(answered)).isTrue();
        table.ended(answered, true);
        assertThat(table.isHere(answered)).as("its sample is finished").isFalse();
        assertThat(table.freeSamples()).isZero();
    }

    @Test
    void shouldTellASessionThatMayComeFromOneThatIsNot() {
        String later = SessionId.of(2, 7, 0).text();
        assertThatThrownBy(() -> table.session(later))
                .isInstanceOfSatisfying(
                        RefusedCallException.class,
                        refusal -> assertThat(refusal.status()).isEqualTo(503));
        table.add(Played.prompt("g", 7, 1), index -> false, index -> false);
        assertThatThrownBy(() -> table.session(later))
                .as("while sessions of the prompt are read back")
                .isInstanceOfSatisfying(
                        RefusedCallException.class,
                        refusal -> assertThat(refusal.status()).isEqualTo(503));
        table.hasTaken(Played.prompt("g", 7, 1).partition().partition(), 8);
        assertThatThrownBy(() -> table.session(later))
                .isInstanceOfSatisfying(
                        RefusedCallException.class,
                        refusal -> assertThat(refusal.status()).isEqualTo(404));
        assertThatThrownBy(() -> table.session("made-up")).hasMessageContaining("no gateway gives a session the name");
        table.forget(Set.of(Played.prompt("g", 7, 1).partition()));
        assertThat(table.freeSamples()).isZero();
        assertThat(table.open()).isEqualTo(List.of());
    }
}
