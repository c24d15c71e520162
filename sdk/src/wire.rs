//! Field by field between own types and the generated ones, so that a type is written once (`data.rs`, `requests.rs`).

use kandev_proto::struct_from_json;
use prost_types::Struct;

use crate::json::{self, Object};

/// Made of a field of the wire.
pub(crate) trait FromWire<W> {
    fn from_wire(wire: W) -> Self;
}

/// Becomes a field of the wire.
pub(crate) trait IntoWire<W> {
    fn into_wire(self) -> W;
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl FromWire<$type> for $type {
            fn from_wire(wire: $type) -> Self {
                wire
            }
        }

        impl IntoWire<$type> for $type {
            fn into_wire(self) -> $type {
                self
            }
        })*
    };
}

plain!(String, bool, i32, i64);

impl<W, T: FromWire<W>> FromWire<Option<W>> for Option<T> {
    fn from_wire(wire: Option<W>) -> Self {
        wire.map(T::from_wire)
    }
}

impl<W, T: FromWire<W>> FromWire<Vec<W>> for Vec<T> {
    fn from_wire(wire: Vec<W>) -> Self {
        wire.into_iter().map(T::from_wire).collect()
    }
}

impl FromWire<Option<Struct>> for Object {
    fn from_wire(wire: Option<Struct>) -> Self {
        json::to_object(wire)
    }
}

impl<W, T: IntoWire<W>> IntoWire<Option<W>> for Option<T> {
    fn into_wire(self) -> Option<W> {
        self.map(T::into_wire)
    }
}

impl<W, T: IntoWire<W>> IntoWire<Vec<W>> for Vec<T> {
    fn into_wire(self) -> Vec<W> {
        self.into_iter().map(T::into_wire).collect()
    }
}

/// Where the wire has no presence, absent is the empty text.
impl IntoWire<String> for Option<String> {
    fn into_wire(self) -> String {
        self.unwrap_or_default()
    }
}

impl IntoWire<Option<Struct>> for Object {
    fn into_wire(self) -> Option<Struct> {
        (!self.is_empty()).then(|| struct_from_json(self))
    }
}

/// A struct that the host sends. `field: Type = name` reads the wire's field `name`.
macro_rules! received {
    (@field $wire:ident $field:ident) => { $wire.$field };
    (@field $wire:ident $field:ident $name:ident) => { $wire.$name };
    ($($(#[$meta:meta])* struct $type:ident {
        $($(#[$field_meta:meta])* $field:ident: $field_type:ty $(= $name:ident)?,)*
    })*) => {
        $($(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $type {
            $($(#[$field_meta])* pub $field: $field_type,)*
        }

        impl $crate::wire::FromWire<kandev_proto::v1::$type> for $type {
            fn from_wire(wire: kandev_proto::v1::$type) -> Self {
                Self { $($field: $crate::wire::FromWire::from_wire($crate::wire::received!(@field wire $field $($name)?)),)* }
            }
        })*
    };
}

/// A struct that the plugin sends, as the generated type behind `as`.
macro_rules! sent {
    ($($(#[$meta:meta])* struct $type:ident as $wire:ident {
        $($(#[$field_meta:meta])* $field:ident: $field_type:ty,)*
    })*) => {
        $($(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $type {
            $($(#[$field_meta])* pub $field: $field_type,)*
        }

        impl $crate::wire::IntoWire<kandev_proto::v1::$wire> for $type {
            fn into_wire(self) -> kandev_proto::v1::$wire {
                kandev_proto::v1::$wire { $($field: $crate::wire::IntoWire::into_wire(self.$field),)* }
            }
        })*
    };
}

pub(crate) use {received, sent};
