//! What one connection follows beside what everyone is told.

use std::collections::BTreeSet;

use super::notice::Audience;

/// Most things of a kind that one connection follows.
pub const MAX_FOLLOWED: usize = 1000;

/// What can be followed by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// A task with its sessions.
    Task,
    /// A session.
    Session,
    /// A run; nothing is told of runs yet.
    Run,
}

impl Topic {
    /// The key of its id in a request's payload.
    pub fn key(self) -> &'static str {
        match self {
            Self::Task => "task_id",
            Self::Session => "session_id",
            Self::Run => "run_id",
        }
    }
}

/// It follows as much as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interests {
    tasks: BTreeSet<String>,
    sessions: BTreeSet<String>,
    runs: BTreeSet<String>,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About<'a> {
    /// Its task.
    pub task: &'a str,
    /// Its session.
    pub session: &'a str,
    /// Its user.
    pub user: &'a str,
}

impl Interests {
    fn of(&mut self, topic: Topic) -> &mut BTreeSet<String> {
        match topic {
            Topic::Task => &mut self.tasks,
            Topic::Session => &mut self.sessions,
            Topic::Run => &mut self.runs,
        }
    }

    /// Follows it from now on.
    ///
    /// # Errors
    /// [`Full`] beyond [`MAX_FOLLOWED`].
    pub fn follow(&mut self, topic: Topic, id: &str) -> Result<(), Full> {
        let followed = self.of(topic);
        if followed.len() >= MAX_FOLLOWED && !followed.contains(id) {
            return Err(Full);
        }
        followed.insert(id.to_owned());
        Ok(())
    }

    /// No longer follows it.
    pub fn leave(&mut self, topic: Topic, id: &str) {
        self.of(topic).remove(id);
    }

    /// Whether the connection of `user` is told of an event about this.
    pub fn wants(&self, user: &str, audience: Audience, about: About<'_>) -> bool {
        match audience {
            Audience::Everyone => true,
            Audience::Session => self.sessions.contains(about.session) || self.tasks.contains(about.task),
            Audience::Task => self.tasks.contains(about.task),
            Audience::User => !about.user.is_empty() && about.user == user,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_of_a_session_is_for_those_that_follow_it_or_its_task() {
        let mut mine = Interests::default();
        let about = About { task: "t", session: "s", user: "" };
        let told = |mine: &Interests| {
            [Audience::Everyone, Audience::Session, Audience::Task].map(|a| mine.wants("me", a, about))
        };
        assert_eq!(told(&mine), [true, false, false]);
        mine.follow(Topic::Session, "s").unwrap();
        assert_eq!(told(&mine), [true, true, false]);
        mine.leave(Topic::Session, "s");
        mine.follow(Topic::Task, "t").unwrap();
        assert_eq!(told(&mine), [true, true, true]);
    }

    #[test]
    fn what_is_a_users_own_reaches_that_user_alone() {
        let mine = Interests::default();
        let of = |user| About { user, ..About::default() };
        assert!(mine.wants("me", Audience::User, of("me")));
        assert!(!mine.wants("me", Audience::User, of("you")) && !mine.wants("", Audience::User, of("")));
    }

    #[test]
    fn a_connection_follows_a_bounded_number_of_things() {
        let mut mine = Interests::default();
        (0..MAX_FOLLOWED).for_each(|n| mine.follow(Topic::Run, &n.to_string()).unwrap());
        assert_eq!(mine.follow(Topic::Run, "one more"), Err(Full));
        assert_eq!(mine.follow(Topic::Run, "7"), Ok(()), "it is followed already");
        mine.leave(Topic::Run, "7");
        assert_eq!(mine.follow(Topic::Run, "one more"), Ok(()));
    }
}
