package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class SessionTest {
    private final Session session = Played.session();

    @Test
    void shouldGiveNumbersThatNoGatewayBeforeCanHaveGiven() {
        assertThat(session.takeNumber()).isZero();
        session.restored(7, 1);
        assertThat(session.takeNumber()).isEqualTo(Session.NUMBERS);
        session.restored(8, 2);
        assertThat(session.takeNumber()).isEqualTo(2 * Session.NUMBERS);
        session.restored(9, 1_000_000);
        assertThatThrownBy(session::takeNumber).hasMessageContaining("has used up its turn numbers");
    }

    @Test
    void shouldHaveForItsNewestTurnTheOneOfTheGatewayThatPlaysIt() {
        Session before = Played.session();
        Played.answer(before, Played.chat("{'role': 'user', 'content': 'a'}"), "yes$");
        PlayedTurn late = Played.answer(before, Played.chat("{'role': 'user', 'content': 'c'}"), "yes$");
        Played.answer(session, Played.chat("{'role': 'user', 'content': 'a'}"), "yes$");
        session.restored(7, 1);
        Played.answer(session, Played.chat("{'role': 'user', 'content': 'b'}"), "no$");
        session.add(late); // by the previous owner, which does not know that it ended
        assertThat(session.turns()).extracting(turn -> turn.record().getTurn()).containsExactly(0, 1, Session.NUMBERS);
    }
}
