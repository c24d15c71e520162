//! What a route is: its method, path, action and handler, and what the document of the API says of it.
//!
//! One entry says both, so the routes and `/api/openapi.json` cannot differ; `document` writes the second from it.

use actix_web::{Route, http::Method};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        RefOr, Schema,
        path::{Parameter, ParameterIn},
    },
};

use super::query::Takes;
use crate::domain::action::Action;

/// One method of one path.
pub struct Endpoint {
    pub method: Method,
    pub path: &'static str,
    /// The path for people: in figures, spans, log lines and the document.
    pub shown: &'static str,
    pub action: Action,
    pub handler: fn() -> Route,
    pub takes: Takes,
    pub doc: Doc,
}

/// What the document says of a route beside what follows from its path and action.
#[derive(Clone, Copy)]
pub struct Doc {
    /// One line.
    pub summary: &'static str,
    /// The query's parameters.
    pub query: Option<fn() -> Vec<Parameter>>,
    /// The request's body.
    pub body: Option<Content>,
    /// Fields of the body that must be there and say something, though its type can do without: it serves another route
    /// too.
    pub needs: &'static [&'static str],
    /// Status and body of success; more than one when it depends, also of one status.
    pub answers: [Option<(u16, Content)>; 2],
    /// Statuses of refusal that are the route's own.
    pub refusals: &'static [u16],
    /// Whether it is about one thing with a version: `ETag` in the answer, `If-Match` when it changes it.
    pub versioned: bool,
    /// Whether it looks at `If-Match` although it is a POST.
    pub conditional: bool,
    /// Whether it is a change that an `Idempotency-Key` makes once.
    pub once: bool,
    /// Whether the answer is somebody else's: anything may come.
    pub relayed: bool,
    /// Whether it is open to everyone only when a setting or a manifest says so.
    pub may_need_login: bool,
}

/// What a body is.
#[derive(Clone, Copy)]
pub enum Content {
    /// Nothing.
    Empty,
    /// JSON of this shape.
    Json(fn(&mut Shapes) -> RefOr<Schema>),
    /// Text or bytes of this media type.
    Media(&'static str),
    /// A form with a file in this field, or JSON of the shape.
    Form(&'static str, fn(&mut Shapes) -> RefOr<Schema>),
}

/// The named shapes that a document refers to.
pub type Shapes = Vec<(String, RefOr<Schema>)>;

/// A reference to the shape of `T`, which is put among the named ones with all that it refers to.
pub fn shape<T: ToSchema>(shapes: &mut Shapes) -> RefOr<Schema> {
    T::schemas(shapes);
    shapes.push((T::name().into_owned(), T::schema()));
    utoipa::openapi::Ref::from_schema_name(T::name()).into()
}

fn parameters<T: IntoParams>() -> Vec<Parameter> {
    T::into_params(|| Some(ParameterIn::Query))
}

impl Doc {
    const NONE: Self = Self {
        summary: "",
        query: None,
        body: None,
        needs: &[],
        answers: [None, None],
        refusals: &[],
        versioned: false,
        conditional: false,
        once: false,
        relayed: false,
        may_need_login: false,
    };
}

impl Endpoint {
    const fn new(method: Method, path: &'static str, action: Action, handler: fn() -> Route) -> Self {
        Self { method, path, shown: path, action, handler, takes: Takes::Nothing, doc: Doc::NONE }
    }

    /// What may stand behind the question mark, when no type tells.
    pub const fn takes(mut self, takes: Takes) -> Self {
        self.takes = takes;
        self
    }

    /// For a path whose pattern has the router's own notation in it.
    pub const fn shown_as(mut self, path: &'static str) -> Self {
        self.shown = path;
        self
    }

    /// What it does, in one line.
    pub const fn about(mut self, summary: &'static str) -> Self {
        self.doc.summary = summary;
        self
    }

    /// It takes a query of this type, which must deny unknown fields.
    pub const fn query<T: IntoParams>(mut self) -> Self {
        self.takes = Takes::Parameters;
        self.doc.query = Some(parameters::<T>);
        self
    }

    /// It takes a body of JSON.
    pub const fn body<T: ToSchema>(mut self) -> Self {
        self.doc.body = Some(Content::Json(shape::<T>));
        self
    }

    /// Its body must have these texts, which the same type does without for another route.
    pub const fn needs(mut self, fields: &'static [&'static str]) -> Self {
        self.doc.needs = fields;
        self
    }

    /// It takes another kind of body.
    pub const fn body_of(mut self, content: Content) -> Self {
        self.doc.body = Some(content);
        self
    }

    /// It answers JSON with this status.
    pub const fn gives<T: ToSchema>(self, status: u16) -> Self {
        self.gives_of(status, Content::Json(shape::<T>))
    }

    /// It answers something else with this status.
    pub const fn gives_of(mut self, status: u16, content: Content) -> Self {
        let place = if self.doc.answers[0].is_none() { 0 } else { 1 };
        self.doc.answers[place] = Some((status, content));
        self
    }

    /// It refuses with these statuses too.
    pub const fn refuses(mut self, statuses: &'static [u16]) -> Self {
        self.doc.refusals = statuses;
        self
    }

    /// Its answer is one thing with a version.
    pub const fn versioned(mut self) -> Self {
        self.doc.versioned = true;
        self
    }

    /// A POST that changes a thing which is there, in the version that was seen.
    pub const fn conditional(mut self) -> Self {
        self.doc.conditional = true;
        self
    }

    /// Whether it looks at `If-Match`: what changes or deletes one thing with a version does, what makes one does not.
    pub fn takes_if_match(&self) -> bool {
        self.doc.conditional || (self.doc.versioned && matches!(self.method.as_str(), "PUT" | "PATCH" | "DELETE"))
    }

    /// It changes something once for each `Idempotency-Key`.
    pub const fn once(mut self) -> Self {
        self.doc.once = true;
        self
    }

    /// Its action is open to everyone, but its handler may ask for another one.
    pub const fn may_need_login(mut self) -> Self {
        self.doc.may_need_login = true;
        self
    }

    /// It passes on somebody else's answer.
    pub const fn relayed(mut self) -> Self {
        self.doc.relayed = true;
        self
    }
}

pub const fn get(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint::new(Method::GET, path, action, handler)
}

/// The headers that a GET would have.
pub const fn head(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint::new(Method::HEAD, path, action, handler)
}

pub const fn post(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint::new(Method::POST, path, action, handler)
}

pub const fn put(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint::new(Method::PUT, path, action, handler)
}

pub const fn patch(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint::new(Method::PATCH, path, action, handler)
}

pub const fn delete(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint::new(Method::DELETE, path, action, handler)
}
